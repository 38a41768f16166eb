"""Weights in eight bits: one scale for each row that is summed, biases and states stay float32.

    w ≈ scale · q,   q = round(w / scale) in −127…127,   scale = max|w| / 127 over the row

One unit or gate sums over a row, so that a unit with small weights loses no more than one
with large weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradsieve.export._portable import Portable, portable
from gradsieve.model import Model
from gradsieve.network import Array

LARGEST = 127


@dataclass(frozen=True, eq=False)
class Int8Rows:
    """A matrix as int8 rows and their scales."""

    q: Array  # (rows, summed over) int8
    scale: Array  # (rows,) float32

    @classmethod
    def of(cls, matrix: Array) -> Int8Rows:
        rows = np.asarray(matrix, dtype=np.float32)
        largest = np.abs(rows).max(axis=1)
        scale = np.where(largest > 0, largest / LARGEST, 1).astype(np.float32)
        scale = np.maximum(scale, np.finfo(np.float32).tiny)
        q = np.clip(np.rint(rows / scale[:, None]), -LARGEST, LARGEST)
        return cls(q.astype(np.int8), scale)

    def matrix(self) -> Array:
        return (self.q * self.scale[:, None]).astype(np.float32)


def quantised(model: Model | Portable) -> Portable:
    """The network as it computes with int8 weights, for measuring their loss of accuracy."""
    network = portable(model)
    rounded = (
        replace(layer, w_ih=Int8Rows.of(layer.w_ih).matrix(), w_hh=Int8Rows.of(layer.w_hh).matrix())
        for layer in network.layers
    )
    return replace(network, layers=tuple(rounded), w_out=Int8Rows.of(network.w_out).matrix())
