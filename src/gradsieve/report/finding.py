"""The findings about runs, in plain words.

The words follow the numbers: they also say that a sieve did not help, that chance explains a
difference, and that a run is not finished.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from gradsieve.report.advice import SOLVED, advice, solved, stuck
from gradsieve.report.comparison import Comparison, Experiment, Variant, compare
from gradsieve.report.runs import SLOW, RecordedRun
from gradsieve.training.corrections import finite

UNLIKELY = 0.05
MOST_REASONS = 5
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Finding:
    """A headline, its evidence, and advice where something is wrong."""

    experiment: str
    headline: str
    points: tuple[str, ...]
    next: str


def percent(value: float | None, digits: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def signed(value: float) -> str:
    return f"{value:g}".replace("-", "−")


def finding(experiment: Experiment) -> Finding:
    """The finding about the runs on one task."""
    comparisons = [
        comparison
        for treatment in experiment.variants
        for baseline in experiment.variants
        if treatment.sieved and not baseline.sieved
        if (comparison := compare(treatment, baseline)) is not None
    ]
    points = [_about(variant, experiment) for variant in experiment.variants]
    points += [_compared(comparison) for comparison in comparisons]
    points += [_predicted(experiment), _broken(experiment)]
    return Finding(
        experiment.name,
        _headline(experiment, comparisons),
        tuple(point for point in points if point),
        _next(experiment),
    )


def _about(variant: Variant, experiment: Experiment) -> str:
    parts = [_learned(variant, experiment.chance), _staged(variant), _reach(variant, experiment)]
    parts.append(_layers(variant))
    if variant.sieved:
        parts.append(_sieved(variant))
    return " ".join(part for part in parts if part)


def _headline(experiment: Experiment, comparisons: list[Comparison]) -> str:
    """The best sieved variant against the strongest one without a sieve."""
    running = sum(run.result is None for run in experiment.runs)
    so_far = f" ({running} of {len(experiment.runs)} runs not finished)" if running else ""
    if not comparisons:
        best = max(experiment.runs, key=lambda run: run.accuracy or 0)
        if best.accuracy is None:
            return _by_loss(experiment.runs, so_far)
        subject = "The network" if len(experiment.runs) == 1 else "The best network"
        return f"{subject} {_outcome(best, experiment.chance)}{so_far}."
    strongest = max(comparisons, key=lambda pair: pair.baseline.mean_accuracy or 0).baseline
    pair = max(
        (pair for pair in comparisons if pair.baseline is strongest), key=lambda pair: pair.mean
    )
    sieve, without = f"“{pair.treatment.name}”", f"“{pair.baseline.name}”"
    tried = sum(variant.sieved for variant in experiment.variants)
    if tried > 1:
        sieve += f", the best of {tried} sieves tried,"
    if pair.mean == 0:
        return f"{sieve} and {without} reach the same mean accuracy{so_far}."
    points = f"{100 * abs(pair.mean):.1f} percentage points"
    outcome = f"scores {points} {'more' if pair.mean > 0 else 'less'}"
    count = len(pair.differences)
    evidence = (
        "a difference that chance rarely makes"
        if pair.by_chance < UNLIKELY
        else f"but {count} {_networks(count)} cannot tell that from chance"
    )
    return f"{sieve} {outcome} than {without} on average, {evidence}{so_far}."


def _by_loss(runs: list[RecordedRun], so_far: str) -> str:
    """Of runs whose accuracy nobody measured: which has the lowest loss."""
    ends = {run.folder.name: loss for run in runs if (loss := run.last("loss")) is not None}
    if not ends:
        return f"Nothing measured yet{so_far}."
    name = min(ends, key=lambda one: ends[one])
    if len(ends) == 1:
        return f"The loss is {ends[name]:.3g} at the last record{so_far}."
    return f"“{name}” has the lowest loss at its last record, {ends[name]:.3g}{so_far}."


def _networks(count: int) -> str:
    return "network" if count == 1 else "networks"


def _outcome(run: RecordedRun, chance: float | None) -> str:
    accuracy = run.accuracy
    if accuracy is None:
        return "has no accuracy yet"
    of = "test" if run.result is not None else "validation"
    measured = f"{percent(accuracy)} {of} accuracy"
    if chance is not None:
        measured += f", a constant guess scores {percent(chance)}"
    if accuracy >= SOLVED:
        return f"solved the task ({measured})"
    if stuck(run):
        return f"learned nothing beyond a constant guess ({measured})"
    return f"learned part of the task ({measured})"


def _learned(variant: Variant, chance: float | None) -> str:
    values = list(variant.accuracies.values())
    losses = [loss for run in variant.runs if (loss := run.last("loss")) is not None]
    if not values and losses:
        mean = sum(losses) / len(losses)
        return f"“{variant.name}”: mean loss {mean:.3g} at the last record."
    if not values:
        return f"“{variant.name}”: nothing measured yet."
    solved = sum(value >= SOLVED for value in values)
    at_a_guess = sum(map(stuck, variant.runs))
    text = (
        f"“{variant.name}”: mean accuracy {percent(variant.mean_accuracy)}, best "
        f"{percent(max(values))}; {solved} of {len(values)} {_networks(len(values))} solved the "
        f"task (at least {percent(SOLVED, 0)})"
    )
    if chance is not None and at_a_guess:
        text += f", {at_a_guess} learned nothing beyond a constant guess ({percent(chance)})"
    return text + ("." if variant.finished else "; not finished, validation accuracy so far.")


def _compared(pair: Comparison) -> str:
    count = len(pair.differences)
    same = count - pair.better - pair.worse
    return (
        f"“{pair.treatment.name}” against “{pair.baseline.name}”, from the same initial weights: "
        f"better on {pair.better}, worse on {pair.worse}, equal on {same} of {count} "
        f"{_networks(count)}; mean difference {_points(pair.mean)}. Were the sieve "
        f"without effect, a difference this large would come about in "
        f"{percent(pair.by_chance)} of cases (paired sign-flip test)."
    )


def _points(difference: float) -> str:
    return f"{100 * difference:+.1f} percentage points".replace("-", "−")


def _staged(variant: Variant) -> str:
    stages = [f"{epochs:g} over {length:g} steps" for length, epochs in variant.runs[0].stages]
    if not stages:
        return ""
    return (
        f"Short sequences came first, in epochs: {', '.join(stages)}; there slow Q is of those "
        "lengths."
    )


def _reach(variant: Variant, experiment: Experiment) -> str:
    measure = variant.runs[0].measure
    columns = [run.column(measure) for run in variant.runs]
    values = [value for column in columns for value in column if value is not None]
    ends = [value for run in variant.runs if (value := run.last(measure)) is not None]
    if not values or not ends:
        return ""
    name = "slow Q" if measure == SLOW else "Q"
    low, high = variant.runs[0].q_range or experiment.q_range
    vanished = sum(value > high for value in values) / len(values)
    exploded = sum(value < low for value in values) / len(values)
    end = statistics.median(ends)
    weaker = "weaker" if end >= 0 else "stronger"
    said = [
        f"had {word} ({name} {bound}) in {percent(share, 0)} of records"
        for word, bound, share in (
            ("vanished", f"above {signed(high)}", vanished),
            ("exploded", f"below {signed(low)}", exploded),
        )
        if share
    ]
    within = f"kept its {name} in the safe range, {signed(low)} to {signed(high)}"
    return (
        f"The far gradient {' and '.join(said) or within}; at the end it is typically "
        f"{_times(abs(end))} {weaker} than the near one (median {name} {signed(round(end, 2))})."
    )


def _layers(variant: Variant) -> str:
    """The layers of a PyTorch model at the last record of the first run."""
    epochs = variant.runs[0].epochs
    layers = epochs[-1].get("layers") if epochs else None
    said = []
    for name, seen in layers.items() if isinstance(layers, Mapping) else ():
        if not isinstance(seen, Mapping):
            continue
        slow, reach = finite(seen.get("slow_Q")), finite(seen.get("reach"))
        if slow is not None and reach is not None:
            said.append(f"{name} {signed(round(slow, 2))} and {reach:g} steps")
    return f"Slow Q and reach by layer at the last record: {', '.join(said)}." if said else ""


def _times(power: float) -> str:
    if power < 6:
        return f"{float(f'{10**power:.2g}'):,g} times"
    return f"about 10{str(round(power)).translate(SUPERSCRIPTS)} times"


def _sieved(variant: Variant) -> str:
    done = variant.corrections
    if not done.updates:
        return ""
    reasons = "; ".join(
        f"“{reason}” {percent(count / done.updates)}"
        for reason, count in done.reasons.most_common(MOST_REASONS)
    )
    stalls = variant.total("stalls")
    stalled = f" It stalled {stalls:g} times." if stalls else ""
    return f"The sieve {done} (reasons: {reasons}).{stalled}"


def _next(experiment: Experiment) -> str:
    """Advice for the best way of training, where some of its networks did not solve the task."""
    best = max(experiment.variants, key=lambda variant: variant.mean_accuracy or 0.0)
    judged = best.runs[0].epochs[-1].get("judgement") if best.runs[0].epochs else None
    if isinstance(judged, str):
        return f"“{best.name}” at its last record: {judged}"
    advised = Counter(text for run in best.runs if (text := advice(run)))
    if not advised:
        return ""
    unsolved = sum(not solved(run) for run in best.runs)
    those = "" if len(best.runs) == 1 else f"{unsolved} of {len(best.runs)} with “{best.name}”: "
    return f"What to try next: {those}{advised.most_common(1)[0][0]}."


def _predicted(experiment: Experiment) -> str:
    """How often the predicted change of the far gradient had the sign of the measured one."""
    pairs = [
        (predicted, measured)
        for run in experiment.runs
        for epoch in run.epochs
        if isinstance(probe := epoch.get("probe"), dict)
        if (predicted := finite(probe.get("predicted"))) is not None
        if (measured := finite(probe.get("measured"))) is not None
    ]
    if not pairs:
        return ""
    right = sum((predicted > 0) == (measured > 0) for predicted, measured in pairs)
    return (
        f"Of {len(pairs)} {'update' if len(pairs) == 1 else 'updates'} that were measured, the "
        "prediction had the sign of what really happened to the far gradient in "
        f"{percent(right / len(pairs), 0)}."
    )


def _broken(experiment: Experiment) -> str:
    nonfinite = sum(variant.total("nonfinite") for variant in experiment.variants)
    damaged = sum(run.damaged_lines for run in experiment.runs)
    said = []
    if nonfinite:
        said.append(
            f"{nonfinite:g} minibatches had a loss or gradient that was not finite; they were not "
            "applied."
        )
    if damaged:
        said.append(f"{damaged} damaged history lines were left out.")
    return " ".join(said)
