"""A run's history as columns for the charts, thinned where it is too long to draw or to send.

A point of a thinned history stands for several records: counts are summed, bounds keep their
extreme, values of an epoch's end keep the last one, and all others are averaged. The page says how
many records a point stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradsieve.report.runs import RecordedRun
from gradsieve.training.corrections import finite, reasons

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
    "slow_Q": _mean,
    "Q": _mean,
    "Q_min": min,
    "Q_max": max,
    "kept": _mean,
    "stalls": sum,
    "nonfinite": sum,
    "gradient_norm": _mean,
}
PROBE_NUMBERS = ("activation_mean", "activation_median", "saturated", "predicted", "measured")


def columns(
    run: RecordedRun, most_points: int = MOST_POINTS, most_probes: int = MOST_PROBES
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
    """How many updates had each reason."""
    counts: dict[str, list[int]] = {}
    for position, group in enumerate(groups):
        for epoch in group:
            for reason, count in reasons(epoch).items():
                counts.setdefault(reason, [0] * len(groups))[position] += count
    return counts


def _probes(run: RecordedRun, most_probes: int) -> dict[str, Any]:
    """The probed epochs: gradient norms over lag, activations, predicted and measured changes."""
    probed = [epoch for epoch in run.epochs if isinstance(epoch.get("probe"), Mapping)]
    kept = probed[:: max(1, -(-len(probed) // most_probes))]
    if probed and kept[-1] is not probed[-1]:
        kept.append(probed[-1])
    lags = sorted({lag for epoch in kept for lag in _by_lag(epoch["probe"], "log10_norm")})
    return {
        "epoch": [int(epoch["epoch"]) for epoch in kept],
        "lags": lags,
        **{
            name: [[_by_lag(epoch["probe"], name).get(lag) for lag in lags] for epoch in kept]
            for name in ("log10_norm", "slow_Q")
        },
        **{
            name: [_shorter(finite(epoch["probe"].get(name))) for epoch in kept]
            for name in PROBE_NUMBERS
        },
    }


def _by_lag(probe: Mapping[str, Any], name: str) -> dict[int, float | None]:
    """A number of a probe that was taken at several lags."""
    lags, values = probe.get("lags"), probe.get(name)
    if not isinstance(lags, list) or not isinstance(values, list):
        return {}
    pairs = zip(lags, values, strict=False)
    return {lag: _shorter(finite(value)) for lag, value in pairs if isinstance(lag, int)}
