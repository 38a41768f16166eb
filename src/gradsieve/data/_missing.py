"""Missing inputs and their replacements, the same in training and on a device.

Every choice looks at the past only, so that a device that sees one step at a time does the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gradsieve.data._preparation import Missing
from gradsieve.data._sequences import Sequences
from gradsieve.errors import InvalidArgument
from gradsieve.network import Array


def filled(data: Sequences, missing: Missing, mean: Array) -> Sequences:
    """The sequences without NaN.

    Args:
        data: sequences, whose inputs may be NaN.
        missing: "refuse"; "mean" takes the input's mean in training; "last" the last value of it in
            its sequence, and the mean before there is any.
        mean: (I,) of the training part.
    """
    gaps = np.isnan(data.values)
    if not gaps.any():
        return data
    if missing == "mean":
        return replace(data, values=np.where(gaps, mean, data.values))
    begins = np.repeat(data.offsets[:-1], data.lengths)
    if missing == "last":
        rows = np.arange(len(gaps))[:, None]
        latest = np.maximum.accumulate(np.where(gaps, -1, rows), axis=0)
        known = latest >= begins[:, None]
        seen = np.take_along_axis(data.values, np.maximum(latest, 0), axis=0)
        return replace(data, values=np.where(known, seen, mean))
    row, column = (int(index) for index in np.argwhere(gaps)[0])
    series = int(np.searchsorted(data.offsets, row, side="right")) - 1
    raise InvalidArgument(
        f"input {data.features[column]!r} is missing at step {row - int(begins[row]) + 1} of "
        f"series {data.names[series][:60]!r}; fill it in, or choose missing 'mean' or 'last'"
    )
