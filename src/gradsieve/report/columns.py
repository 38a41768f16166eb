"""A run's history as columns for the charts, thinned where it is too long to draw or to send.

A point of a thinned history stands for several records: what is counted is summed, what is a
bound keeps its extreme, what is measured at the end of an epoch keeps its last value, and the
rest is averaged. The page says how many records a point stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradsieve.report.runs import Run, finite

MOST_POINTS = 500  # as many as a wide screen can tell apart
MOST_PROBES = 200

Column = list[float | None]
Merge = Callable[[list[float]], float]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _last(values: list[float]) -> float:
    return values[-1]


MERGES: dict[str, Merge] = {
    "loss": _mean,
    "accuracy": _last,
    "validation_loss": _last,
    "Q": _mean,
    "Q_min": min,
    "Q_max": max,
    "dS": _mean,
    "relative": _mean,
    "kept": _mean,
    "stalls": sum,
    "nonfinite": sum,
    "gradient_norm": _mean,
}
PROBE_NUMBERS = ("activation_mean", "activation_median", "saturated", "predicted", "measured")


def columns(
    run: Run, most_points: int = MOST_POINTS, most_probes: int = MOST_PROBES
) -> dict[str, Any]:
    """Everything that is drawn of one run's history."""
    every = max(1, -(-len(run.epochs) // most_points))
    groups = [run.epochs[start : start + every] for start in range(0, len(run.epochs), every)]
    return {
        "every": every,
        "epoch": [int(group[-1]["epoch"]) for group in groups],
        **{name: _merged(groups, name, merge) for name, merge in MERGES.items()},
        "reasons": _reasons(groups),
        "probe": _probes(run, most_probes),
    }


def _merged(groups: Sequence[Sequence[Mapping[str, Any]]], name: str, merge: Merge) -> Column:
    column: Column = []
    for group in groups:
        values = [value for epoch in group if (value := finite(epoch.get(name))) is not None]
        column.append(_shorter(merge(values)) if values else None)
    return column


def _shorter(value: float | None) -> float | None:
    """Six significant digits: more than a chart shows, half the file."""
    return None if value is None else float(f"{value:.6g}")


def _reasons(groups: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[int]]:
    """How many updates got each verdict, by reason."""
    counts: dict[str, list[int]] = {}
    for position, group in enumerate(groups):
        for epoch in group:
            reasons = epoch.get("reasons")
            if not isinstance(reasons, Mapping):
                continue
            for reason, count in reasons.items():
                column = counts.setdefault(str(reason), [0] * len(groups))
                column[position] += int(finite(count) or 0)
    return counts


def _probes(run: Run, most_probes: int) -> dict[str, Any]:
    """The probed epochs: gradient norms over lag, activations, predicted and measured changes."""
    probed = [epoch for epoch in run.epochs if isinstance(epoch.get("probe"), Mapping)]
    kept = probed[:: max(1, -(-len(probed) // most_probes))]
    if probed and kept[-1] is not probed[-1]:
        kept.append(probed[-1])
    lags = sorted({lag for epoch in kept for lag in _norms(epoch["probe"])})
    return {
        "epoch": [int(epoch["epoch"]) for epoch in kept],
        "lags": lags,
        "log10_norm": [[_norms(epoch["probe"]).get(lag) for lag in lags] for epoch in kept],
        **{
            name: [_shorter(finite(epoch["probe"].get(name))) for epoch in kept]
            for name in PROBE_NUMBERS
        },
    }


def _norms(probe: Mapping[str, Any]) -> dict[int, float | None]:
    """log10 of the gradient's norm by lag."""
    lags, values = probe.get("lags"), probe.get("log10_norm")
    if not isinstance(lags, list) or not isinstance(values, list):
        return {}
    pairs = zip(lags, values, strict=False)
    return {lag: _shorter(finite(value)) for lag, value in pairs if isinstance(lag, int)}
