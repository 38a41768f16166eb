"""Sequences of symbols among which a few are A or B: temporal order, and its 3-bit form.

Each step is one of the symbols A B c d e f, one-hot in inputs 0 … 5. A few steps, one in each of
the convention's windows, hold A or B at random; all others hold one of c d e f at random. The
class reads A as 0 and B as 1, the earliest symbol first: AA AB BA BB are 0 1 2 3.

author      windows as shares of T rounded to the nearest, both ends included; T steps.
pascanu     T/10 steps from a share of T on, shares rounded down; T steps.
hochreiter  windows as in his experiments at T = 100, and in proportion else, both ends included;
            T to T + T/10 steps. Sequences begin with a start symbol and end with a trigger symbol,
            which makes 8 inputs: input 6 is the start (his E), input 7 the trigger (his B).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gradsieve.tasks._conventions import Convention, checked_convention, checked_length, percent
from gradsieve.tasks._task import Array, Task

SHORTEST: dict[Convention, int] = {"author": 5, "pascanu": 10, "hochreiter": 15}
DISTRACTORS = (2, 5)  # c d e f
START, TRIGGER = 6, 7

Window = tuple[int, int]  # first and last step, both included


@dataclass(frozen=True, kw_only=True)
class SymbolOrder(Task):
    """A classification task on which symbols, A or B, came in which order."""

    windows: tuple[Window, ...]  # where A or B comes, steps counted from 0

    def _draw(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        count = len(starts)
        each = np.arange(count)
        symbols = generator.integers(
            *DISTRACTORS, (self.steps, count), dtype=np.uint8, endpoint=True
        )
        t = np.zeros(count, np.int64)
        for first, last in self.windows:
            position = generator.integers(first, last, count, dtype=np.int64, endpoint=True)
            bit = generator.integers(0, 2, count, dtype=np.int64)
            symbols[starts + position, each] = bit
            t = 2 * t + bit
        if self.convention == "hochreiter":
            symbols[starts, each] = START
            symbols[-1] = TRIGGER
        symbols[np.arange(self.steps)[:, None] < starts] = self.inputs
        # One row more than symbols: the last is all zero, for steps before the sequence.
        one_hot = np.eye(self.inputs + 1, self.inputs, dtype=np.float32)
        return one_hot[symbols], t


def symbol_order(
    name: str,
    length: int,
    convention: Convention,
    window_percents: Mapping[Convention, tuple[tuple[int, int], ...]],
) -> SymbolOrder:
    """The task whose windows lie between these percents of its length."""
    convention = checked_convention(convention)
    length = checked_length(name, length, convention, SHORTEST)
    windows = tuple(
        _window(length, convention, begin, end) for begin, end in window_percents[convention]
    )
    framed = convention == "hochreiter"
    return SymbolOrder(
        name=name,
        length=length,
        convention=convention,
        inputs=8 if framed else 6,
        outputs=2 ** len(windows),
        output="softmax",
        constant_guess=0.5 ** len(windows),
        spare=length // 10 if framed else 0,
        windows=windows,
    )


def _window(length: int, convention: Convention, begin: int, end: int) -> Window:
    if convention == "pascanu":
        first = length * begin // 100
        return first, first + length * (end - begin) // 100 - 1
    # The author and Hochreiter count steps from 1.
    return percent(length, begin) - 1, percent(length, end) - 1
