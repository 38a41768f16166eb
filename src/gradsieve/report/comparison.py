"""Which runs can be compared: an experiment is one task, a variant is one way to train for it.

Runs of one variant differ in their initial network alone. Two variants are compared network by
network, over the networks that both have.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradsieve.experiments.statistics import paired_p_value
from gradsieve.report.runs import Run
from gradsieve.sieve import Sieve

# What runs of one variant share, and what a run that does not say it had.
VARIANT_SETTINGS: dict[str, Any] = {
    "hidden": None,
    "variance": None,
    "gain": 1.0,
    "recurrent": "gaussian",
    "input_gain": 1.0,
    "bias_spread": 0.0,
    "learning_rate": None,
    "momentum": None,
    "clip": None,
    "rms_decay": None,
    "rms_bound": None,
    "warmup": None,
    "cooldown": None,
    "retreat": None,
    "stages": [],
    "rate_by_length": 0.0,
    "batch_by_length": 0.0,
    "batch": None,
    "epochs": None,
    "iterations": None,
    "engine": None,
    "dtype": None,
}
SIEVE_SETTINGS: dict[str, Any] = {
    item.name: None if item.default is dataclasses.MISSING else item.default
    for item in dataclasses.fields(Sieve)
}


@dataclass(frozen=True)
class Variant:
    """Runs that differ in their initial network alone."""

    name: str
    runs: tuple[Run, ...]

    @property
    def sieved(self) -> bool:
        return self.runs[0].sieved

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


@dataclass(frozen=True)
class Experiment:
    """Runs on one task."""

    name: str
    variants: tuple[Variant, ...]

    @property
    def runs(self) -> list[Run]:
        return [run for variant in self.variants for run in variant.runs]

    @property
    def chance(self) -> float | None:
        return next((run.chance for run in self.runs if run.chance is not None), None)

    @property
    def q_range(self) -> tuple[float, float]:
        """The safe range by which runs without a sieve are looked at."""
        return next((run.q_range for run in self.runs if run.q_range is not None), (-1.0, 1.0))


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


def experiments(runs: Sequence[Run]) -> list[Experiment]:
    """Runs sorted into experiments and variants, in the order in which they come."""
    by_task: dict[str, list[Run]] = {}
    for run in runs:
        by_task.setdefault(_experiment_name(run), []).append(run)
    return [Experiment(name, _variants(group)) for name, group in by_task.items()]


def _experiment_name(run: Run) -> str:
    settings = run.settings
    parts = [run.task.replace("_", " ")]
    if settings.get("length") is not None:
        parts.append(f"T = {settings['length']}")
    if settings.get("convention") not in (None, "author"):
        parts.append(f"convention {settings['convention']}")
    return ", ".join(parts)


def _variants(runs: Sequence[Run]) -> tuple[Variant, ...]:
    by_label: dict[str, list[Run]] = {}
    for run in runs:
        by_label.setdefault(run.label, []).append(run)
    variants: list[Variant] = []
    for label, group in by_label.items():
        known = [_settings(run) for run in group]
        differing = [name for name in known[0] if len({one[name] for one in known}) > 1]
        by_settings: dict[tuple[str, ...], list[Run]] = {}
        for run, one in zip(group, known, strict=True):
            by_settings.setdefault(tuple(one[name] for name in differing), []).append(run)
        for values, members in by_settings.items():
            said = [
                f"{name} {'none' if value in ('null', '[]') else value}"
                for name, value in zip(differing, values, strict=True)
            ]
            name = f"{label} ({', '.join(said)})" if said else label
            variants.append(Variant(name, tuple(members)))
    # Without a sieve first, plain before clipped: that is what the others are compared with.
    return tuple(
        sorted(variants, key=lambda variant: (variant.sieved, variant.runs[0].label != "off"))
    )


def _settings(run: Run) -> dict[str, str]:
    """All that makes a variant, the sieve's own settings among it, as text."""
    sieve = run.settings.get("sieve")
    given = sieve if isinstance(sieve, Mapping) else dict.fromkeys(SIEVE_SETTINGS)
    values = {name: run.settings.get(name, usual) for name, usual in VARIANT_SETTINGS.items()}
    values |= {name: given.get(name, usual) for name, usual in SIEVE_SETTINGS.items()}
    return {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in values.items()
    }
