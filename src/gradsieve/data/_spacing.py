"""Time stamps that are not equally spaced: refused, ignored, or made equal by interpolation.

A recurrent network counts steps and knows no time. Steps count as equally spaced where each is
within `TOLERANCE` of the file's median interval.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradsieve.network import Array

TOLERANCE = 0.1  # of the interval


class Grid(NamedTuple):
    """Where the steps of resampled sequences lie between the rows of a file."""

    before: Array  # (steps,) row at or before each step
    weight: Array  # (steps,) how far each step is on the way to the next row, 0 to 1
    lengths: Array  # (N,)


def usual_interval(times: Array, lengths: Array) -> float | None:
    """The median time from one row to the next of its series; None where that says nothing."""
    gaps = np.diff(times)[_within(lengths)]
    interval = float(np.median(gaps)) if gaps.size else 0.0
    return interval if 0 < interval < np.inf else None


def first_unequal(times: Array, lengths: Array, interval: float) -> int | None:
    """The row that is too early or too late after the one before it, or None."""
    wrong = (np.abs(np.diff(times) - interval) > TOLERANCE * interval) & _within(lengths)
    return int(np.flatnonzero(wrong)[0]) + 1 if wrong.any() else None


def grid(times: Array, lengths: Array, interval: float, most: int) -> Grid | None:
    """Steps of one interval from each series' first row to its last; None: more than `most`."""
    ends = np.cumsum(lengths)
    begins = ends - lengths
    steps = ((times[ends - 1] - times[begins]) / interval + TOLERANCE).astype(np.int64) + 1
    if steps.sum() > most:
        return None
    before, weight = [], []
    for begin, end, count in zip(begins, ends, steps, strict=True):
        own = times[begin:end]
        wanted = np.minimum(own[0] + interval * np.arange(count), own[-1])
        row = np.minimum(np.searchsorted(own, wanted, side="right") - 1, max(0, len(own) - 2))
        later = min(1, len(own) - 1)
        gap = own[row + later] - own[row]
        share = np.divide(wanted - own[row], gap, out=np.zeros(count), where=gap > 0)
        before.append(begin + row)
        weight.append(share)
    return Grid(np.concatenate(before), np.concatenate(weight), steps)


def interpolated(values: Array, on: Grid) -> Array:
    """Inputs at the steps of a grid; one that is missing on either side is missing."""
    weight = on.weight[:, None]
    after = np.minimum(on.before + 1, len(values) - 1)
    between = (1 - weight) * values[on.before] + weight * values[after]
    return np.where(weight == 0, values[on.before], between)


def nearest_before(codes: Array, on: Grid) -> Array:
    """Targets at the steps of a grid: that of the row at or before each."""
    found: Array = codes[np.where(on.weight >= 1, on.before + 1, on.before)]
    return found


def _within(lengths: Array) -> Array:
    """(rows − 1,): whether a row and the next belong to one series."""
    same = np.ones(int(lengths.sum()) - 1, dtype=bool)
    same[np.cumsum(lengths)[:-1] - 1] = False
    return same
