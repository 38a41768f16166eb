"""Sequences of (value, marker) pairs, two of them marked: adding and multiplication.

Inputs are channel 0, the value, and channel 1, the marker: 1 at the two marked steps, else 0. The
target is a function of the two marked values. Positions, counted from 0 in a sequence of L steps:

author      first in [0, T̃/10), second in [T̃/10, T̃/2), T̃ = ⌈1.1 T⌉, shares rounded to the
            nearest; L = T. (His MATLAB takes the ceiling of a rounded product: where 1.1 T is an
            integer, T̃ there can be greater by one, and with it the last position of the second.)
pascanu     first in [0, L/10), second in the 4L/10 steps from L/10 on, shares rounded down; L
            from T to T + T/10 - 1, drawn for each sequence (his code: for each minibatch).
hochreiter  first among the first ten pairs, second among the first T/2 - 1 others; L from T to
            T + T/10. The first and the last pair have marker -1. Where a mark falls on the first
            pair, -1 stays and its value becomes one that does not matter: 0 in a sum, 1 in a
            product. (His paper says so of the first mark; here the second is treated alike.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradsieve.tasks._conventions import Convention, percent
from gradsieve.tasks._task import Array, Task

SHORTEST: dict[Convention, int] = {"author": 4, "pascanu": 10, "hochreiter": 11}
HOCHREITER_FIRST = 10


def spare_steps(length: int, convention: Convention) -> int:
    return {"author": 0, "pascanu": length // 10 - 1, "hochreiter": length // 10}[convention]


def lost_mark_share(length: int, convention: Convention) -> float:
    """How likely it is that a mark falls on the first pair and is lost."""
    if convention != "hochreiter":
        return 0.0
    first = 1 / HOCHREITER_FIRST
    return first + (1 - first) / (length // 2 - 1)


@dataclass(frozen=True, kw_only=True)
class MarkedPairs(Task):
    """A regression task on the values at two marked steps."""

    lowest_value: float  # values are uniform in [lowest_value, 1)
    neutral_value: float  # in place of a value whose mark is lost
    target: Callable[[Array, Array], Array]

    def _draw(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        count = len(starts)
        each = np.arange(count)
        first, second = self._positions(generator, starts)
        u = np.zeros((self.steps, count, 2), np.float32)
        values = generator.random((self.steps, count), dtype=np.float32)
        values *= np.float32(1 - self.lowest_value)
        values += np.float32(self.lowest_value)
        values[np.arange(self.steps)[:, None] < starts] = 0
        u[:, :, 0] = values
        u[starts + first, each, 1] = 1
        u[starts + second, each, 1] = 1
        if self.convention == "hochreiter":
            lost = np.flatnonzero((first == 0) | (second == 0))
            u[starts[lost], lost, 0] = self.neutral_value
            u[starts, each, 1] = -1
            u[-1, :, 1] = -1
        t = self.target(u[starts + first, each, 0], u[starts + second, each, 0])
        return u, t[:, None].astype(np.float32, copy=False)

    def _positions(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        """The two marked steps, counted from each sequence's own first."""
        count = len(starts)
        if self.convention == "author":
            stretched = -(-11 * self.length // 10)
            border = percent(stretched, 10)
            first = generator.integers(0, border, count, dtype=np.int64)
            last = percent(stretched, 50)
            return first, generator.integers(border, last, count, dtype=np.int64)
        if self.convention == "pascanu":
            lengths = self.steps - starts
            first = generator.integers(0, lengths // 10, count, dtype=np.int64)
            beyond = generator.integers(0, 4 * lengths // 10, count, dtype=np.int64)
            return first, lengths // 10 + beyond
        first = generator.integers(0, HOCHREITER_FIRST, count, dtype=np.int64)
        rank = generator.integers(0, self.length // 2 - 1, count, dtype=np.int64)
        return first, rank + (rank >= first)  # the rank-th pair that is still unmarked
