"""Weights in eight bits: one scale for each row that is summed, biases and states stay float32.

    w ≈ scale · q,   q = round(w / scale) in −127…127,   scale = max|w| / 127 over the row

A row is what one unit sums over (a column of w_in, w_rec or w_out), so that a unit with small
weights loses no more than one with large weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradsieve.model import Model
from gradsieve.network import SRN, Array

LARGEST = 127


@dataclass(frozen=True, eq=False)
class Rows:
    """A matrix as int8 rows, one a unit, and their scales."""

    q: Array  # (units, summed over) int8
    scale: Array  # (units,) float32

    @classmethod
    def of(cls, matrix: Array) -> Rows:
        """From the network's (summed over, units)."""
        rows = np.asarray(matrix.T, dtype=np.float32)
        largest = np.abs(rows).max(axis=1)
        scale = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
        scale = np.maximum(scale, np.finfo(np.float32).tiny)
        q = np.clip(np.rint(rows / scale[:, None]), -LARGEST, LARGEST)
        return cls(q.astype(np.int8), scale)

    def matrix(self) -> Array:
        return (self.q * self.scale[:, None]).T.astype(np.float32)


def quantised(model: Model) -> Model:
    """The model as it computes with int8 weights: for measuring what they cost."""
    net = model.net
    rounded = SRN(
        w_in=Rows.of(net.w_in).matrix(),
        w_rec=Rows.of(net.w_rec).matrix(),
        b=net.b.astype(np.float32),
        w_out=Rows.of(net.w_out).matrix(),
        b_out=net.b_out.astype(np.float32),
        output=net.output,
    )
    return replace(model, net=rounded)
