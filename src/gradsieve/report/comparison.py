"""Which runs can be compared: an experiment is one task, a variant is one way to train for it.

Runs of one variant differ in their initial network alone. Two variants are compared network by
network, over the networks that both have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradsieve.experiments.statistics import paired_p_value
from gradsieve.report.runs import RecordedRun
from gradsieve.settings import plain
from gradsieve.sieve import Corrections
from gradsieve.training.corrections import corrections

BESIDE = ("hidden", "engine", "dtype")  # fields beside the recipe that make a variant
UNKNOWN_RANGE = (-1.0, 1.0)  # the paper's, for runs without a sieve that recorded Q alone


@dataclass(frozen=True)
class Variant:
    """Runs that differ in their initial network alone."""

    name: str
    runs: tuple[RecordedRun, ...]

    @property
    def sieved(self) -> bool:
        return self.runs[0].recipe.sieve is not None

    @cached_property
    def accuracies(self) -> dict[str, float]:
        """By network; a network that was trained more than once counts with its mean."""
        known: dict[str, list[float]] = {}
        for run in self.runs:
            if run.accuracy is not None:
                known.setdefault(run.network, []).append(run.accuracy)
        return {network: sum(values) / len(values) for network, values in known.items()}

    @property
    def mean_accuracy(self) -> float | None:
        values = self.accuracies.values()
        return sum(values) / len(values) if values else None

    @property
    def finished(self) -> bool:
        return all(run.result is not None for run in self.runs)

    @cached_property
    def corrections(self) -> Corrections:
        """The sieve's corrections in its runs."""
        return corrections(run.epochs for run in self.runs)

    def total(self, name: str) -> float:
        """The sum over all records of a number."""
        return sum(value for run in self.runs for value in run.column(name) if value is not None)

    def ended(self, name: str) -> float:
        """The sum over runs of a number that counts from the beginning of each."""
        return sum(run.last(name) or 0 for run in self.runs)


@dataclass(frozen=True)
class Experiment:
    """Runs on one task."""

    name: str
    variants: tuple[Variant, ...]

    @property
    def runs(self) -> list[RecordedRun]:
        return [run for variant in self.variants for run in variant.runs]

    @property
    def chance(self) -> float | None:
        return next((run.chance for run in self.runs if run.chance is not None), None)

    @property
    def q_range(self) -> tuple[float, float]:
        """The safe range for runs that have none of their own."""
        return next((run.q_range for run in self.runs if run.q_range is not None), UNKNOWN_RANGE)


@dataclass(frozen=True)
class Comparison:
    """Two variants over the initial networks that both have."""

    treatment: Variant
    baseline: Variant
    differences: tuple[float, ...]  # of accuracy, network by network

    @property
    def better(self) -> int:
        return sum(difference > 0 for difference in self.differences)

    @property
    def worse(self) -> int:
        return sum(difference < 0 for difference in self.differences)

    @property
    def mean(self) -> float:
        return sum(self.differences) / len(self.differences)

    @cached_property
    def by_chance(self) -> float:
        """How often a mean this far from zero comes about when signs are tossed (two-sided)."""
        return paired_p_value(self.differences, [0.0] * len(self.differences))


def compare(treatment: Variant, baseline: Variant) -> Comparison | None:
    """None where no network was trained both ways."""
    ours, theirs = treatment.accuracies, baseline.accuracies
    shared = [network for network in ours if network in theirs]
    if not shared:
        return None
    differences = tuple(ours[network] - theirs[network] for network in shared)
    return Comparison(treatment, baseline, differences)


def experiments(runs: Sequence[RecordedRun]) -> list[Experiment]:
    """Runs sorted into experiments and variants, in the order in which they come."""
    by_task: dict[str, list[RecordedRun]] = {}
    for run in runs:
        by_task.setdefault(_experiment_name(run), []).append(run)
    return [Experiment(name, _variants(group)) for name, group in by_task.items()]


def _experiment_name(run: RecordedRun) -> str:
    parts = [run.task.replace("_", " ")]
    if run.about.get("length") is not None:
        parts.append(f"T = {run.about['length']}")
    if run.about.get("convention") not in (None, "author"):
        parts.append(f"convention {run.about['convention']}")
    return ", ".join(parts)


def _variants(runs: Sequence[RecordedRun]) -> tuple[Variant, ...]:
    """Runs by their label, and within a label by the settings in which they differ."""
    by_label: dict[str, list[RecordedRun]] = {}
    for run in runs:
        by_label.setdefault(run.label, []).append(run)
    variants: list[Variant] = []
    for label, group in by_label.items():
        names = dict.fromkeys(name for run in group for name in _differing(group[0], run))
        by_values: dict[str, list[RecordedRun]] = {}
        for run in group:
            said = ", ".join(f"{name} {written(_value(run, name))}" for name in names)
            by_values.setdefault(f"{label} ({said})" if said else label, []).append(run)
        variants += [Variant(name, tuple(members)) for name, members in by_values.items()]
    # Without a sieve first: the others are compared with it.
    return tuple(sorted(variants, key=lambda variant: variant.sieved))


def _differing(one: RecordedRun, other: RecordedRun) -> list[str]:
    beside = [name for name in BESIDE if one.about.get(name) != other.about.get(name)]
    return [*one.recipe.differing(other.recipe), *beside]


def _value(run: RecordedRun, name: str) -> Any:
    return run.about.get(name) if name in BESIDE else run.recipe.flat()[name]


def written(value: Any) -> str:
    """A setting's value as a person writes it."""
    if value is None or value in ((), []):
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {written(one)}" for name, one in value.items())
    return f"{value:g}" if isinstance(value, float) else str(plain(value))
