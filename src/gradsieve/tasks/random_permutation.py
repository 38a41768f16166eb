"""Random permutation: after many random symbols, say the first again.

As in the code of Pascanu, Mikolov & Bengio (2013), after Hochreiter & Schmidhuber (1997): the first
symbol is one of two, the others are any of 98 more, and the symbol after the last is the first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradsieve.tasks._conventions import checked_integer
from gradsieve.tasks._task import Array, Task

FIRST, SYMBOLS = 2, 100


@dataclass(frozen=True, kw_only=True)
class RandomPermutation(Task):
    """Which of two symbols came first."""

    def _draw(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        count = len(starts)
        symbols = generator.integers(FIRST, SYMBOLS, (self.steps, count), dtype=np.int64)
        symbols[0] = generator.integers(0, FIRST, count, dtype=np.int64)
        return np.eye(self.inputs, dtype=np.float32)[symbols], symbols[0].copy()


def random_permutation(length: int = 100) -> RandomPermutation:
    """Random permutation over `length` steps, 100 classes of which two occur.

    >>> task = random_permutation(length=100)
    >>> u, t = task.sample(4, seed=1)
    >>> u.shape, t.shape, task.constant_guess
    ((100, 4, 100), (4,), 0.5)
    """
    return RandomPermutation(
        name="random_permutation",
        length=checked_integer("length", length, 2),
        convention="author",
        inputs=SYMBOLS,
        outputs=SYMBOLS,
        output="softmax",
        constant_guess=1 / FIRST,
    )
