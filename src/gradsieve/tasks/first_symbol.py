"""First symbol: after random symbols, say the first again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradsieve.tasks._conventions import checked_integer
from gradsieve.tasks._task import Array, Task

SYMBOLS = 8


@dataclass(frozen=True, kw_only=True)
class FirstSymbol(Task):
    """Which symbol came first: one below `first`; those after it are from `others` on."""

    first: int
    others: int

    def _draw(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        count = len(starts)
        symbols = generator.integers(self.others, self.inputs, (self.steps, count), dtype=np.int64)
        symbols[0] = generator.integers(0, self.first, count, dtype=np.int64)
        return np.eye(self.inputs, dtype=np.float32)[symbols], symbols[0].copy()


def first_of(name: str, length: int, *, symbols: int, first: int, others: int) -> FirstSymbol:
    """A task over one-hot symbols whose answer is the first of them."""
    return FirstSymbol(
        name=name,
        length=checked_integer("length", length, 2),
        convention="author",
        inputs=symbols,
        outputs=symbols,
        output="softmax",
        constant_guess=1 / first,
        first=first,
        others=others,
    )


def first_symbol(length: int = 100) -> FirstSymbol:
    """The first of eight symbols, any of which may come again over `length` steps.

    >>> task = first_symbol(length=100)
    >>> u, t = task.sample(4, seed=1)
    >>> u.shape, t.shape, task.constant_guess
    ((100, 4, 8), (4,), 0.125)
    """
    return first_of("first_symbol", length, symbols=SYMBOLS, first=SYMBOLS, others=0)
