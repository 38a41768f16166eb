"""Symbols to be recalled after a delay, one a step: copy memory and noiseless memorization.

A sequence has the symbols, then blanks with one cue among them, and targets at *every* step: blank
until the recall begins, then the symbols in their order. Inputs are one-hot: the symbols, the
blank, the cue. Outputs are the symbols and the blank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gradsieve.errors import InvalidArgument
from gradsieve.tasks._conventions import checked_integer
from gradsieve.tasks._task import Array, Task


@dataclass(frozen=True, kw_only=True)
class Recall(Task):
    """Says after `length` steps the symbols that came first. t is (steps, B)."""

    values: int  # different symbols
    positions: int  # symbols to recall
    cue: int  # the step of the cue, counted from 0
    whole: bool  # whether a sequence counts as right only where all its symbols are

    @property
    def steps(self) -> int:
        return self.length + 2 * self.positions

    def _draw(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        count = len(starts)
        blank = self.values
        recalled = generator.integers(0, self.values, (self.positions, count), dtype=np.int64)
        symbols = np.full((self.steps, count), blank)
        symbols[: self.positions] = recalled
        symbols[self.cue] = blank + 1
        t = np.full((self.steps, count), blank, np.int64)
        t[-self.positions :] = recalled
        return np.eye(self.inputs, dtype=np.float32)[symbols], t

    def correct(self, outputs: ArrayLike, t: ArrayLike) -> Array:
        """Which recalled symbols are right: (positions, B), or (B,) where the whole counts.

        `outputs` is (steps, B, O); steps before the recall do not count.
        """
        values, targets = np.asarray(outputs), np.asarray(t)
        if values.ndim != 3 or values.shape[2] != self.outputs or len(values) < self.positions:
            raise InvalidArgument(
                f"outputs have shape {values.shape}; they must be (steps, B, {self.outputs})"
            )
        if targets.shape != values.shape[:2]:
            raise InvalidArgument(
                f"t has shape {targets.shape}; beside outputs {values.shape} it must be "
                f"{values.shape[:2]}"
            )
        values, targets = values[-self.positions :], targets[-self.positions :]
        right = np.isfinite(values).all(axis=2) & (values.argmax(axis=2) == targets)
        return np.asarray(right.all(axis=0) if self.whole else right)


def recall(
    name: str, length: int, *, values: int, positions: int, early: bool, whole: bool
) -> Recall:
    """A recall task; `early`: whether the cue comes one step before the recall, or with it."""
    length = checked_integer("length", length, 1)
    return Recall(
        name=name,
        length=length,
        convention="author",
        inputs=values + 2,
        outputs=values + 1,
        output="softmax",
        constant_guess=(1 / values) ** (positions if whole else 1),
        values=values,
        positions=positions,
        cue=length + positions - early,
        whole=whole,
    )
