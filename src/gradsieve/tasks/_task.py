"""The base of every task: random sequences with a known answer, and which outputs are right.

A task knows nothing of networks. It draws sequences from a seed, says whether outputs are
correct, and has the score of a guess that ignores the input, without which an accuracy of a
regression task cannot be read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gradsieve.errors import InvalidArgument
from gradsieve.tasks._conventions import Convention, checked_integer

Array = NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A source of sequences u (T,B,I) with targets t, at the last step.

    Where a convention draws the length of each sequence, they are aligned at their *end*: u has
    `steps` steps, the longest that there can be, every sequence ends at the last of them, and the
    steps before its first are zero.
    """

    name: str
    length: int  # T, nominal: the least number of steps of a sequence
    convention: Convention
    inputs: int
    outputs: int
    output: Literal["softmax", "linear"]
    constant_guess: float  # share that the best answer which ignores the input gets right, exact
    tolerance: float | None = None  # largest |error| that counts as correct; None for classes
    exclusive: bool = False  # whether an error of exactly the tolerance is already wrong
    spare: int = 0  # sequences have length … length + spare steps, each equally likely

    @property
    def steps(self) -> int:
        """Steps of the longest possible sequence: the first axis of the arrays of `sample`."""
        return self.length + self.spare

    def of_length(self, length: int) -> Task:
        """The same task over sequences of another length."""
        from gradsieve.tasks import by_name  # which knows every task, this one among them

        return by_name(self.name, length, self.convention, self.tolerance)

    def sample(self, count: int, seed: int) -> tuple[Array, Array]:
        """`count` sequences u (steps,B,I) float32 and t: (B,) int64 classes or (B,O) float32.

        Where lengths vary, the steps before a shorter sequence are then steps of zero input like
        any other; `sample_with_starts` tells which they are.
        """
        u, t, _ = self.sample_with_starts(count, seed)
        return u, t

    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]:
        """As `sample`, and how many leading steps are not part of each sequence: (B,) int64.

        None where all sequences have the same length. The same seed and count give the same
        sequences on every platform.
        """
        checked_integer("count", count, 1)
        checked_integer("seed", seed, 0)
        generator = np.random.Generator(np.random.PCG64(int(seed)))
        if not self.spare:
            return *self._draw(generator, np.zeros(count, np.int64)), None
        starts = generator.integers(0, self.spare, count, dtype=np.int64, endpoint=True)
        return *self._draw(generator, starts), starts

    @abstractmethod
    def _draw(self, generator: np.random.Generator, starts: Array) -> tuple[Array, Array]:
        """u and t for sequences that begin after these many steps."""

    def correct(self, outputs: ArrayLike, t: ArrayLike) -> Array:
        """(B,) bool: which outputs (B,O) are right. One that is not finite never is."""
        values, targets = np.asarray(outputs), np.asarray(t)
        if values.ndim != 2 or values.shape[1] != self.outputs or not len(values):
            raise InvalidArgument(
                f"outputs have shape {values.shape}; they must be (B, {self.outputs})"
            )
        expected = values.shape[:1] if self.tolerance is None else values.shape
        if targets.shape != expected:
            raise InvalidArgument(
                f"t has shape {targets.shape}; beside outputs {values.shape} it must be {expected}"
            )
        if self.tolerance is None:
            right: Array = np.isfinite(values).all(axis=1) & (values.argmax(axis=1) == targets)
            return right
        error = np.abs(values.astype(np.float64) - targets)
        within = error < self.tolerance if self.exclusive else error <= self.tolerance
        return np.asarray(within.all(axis=1))

    def accuracy(self, outputs: ArrayLike, t: ArrayLike) -> float:
        """Share of correct outputs, from 0 to 1."""
        return float(self.correct(outputs, t).mean())


def checked_tolerance(tolerance: float | None, default: float) -> float:
    if tolerance is None:
        return default
    if not (math.isfinite(tolerance) and tolerance > 0):
        raise InvalidArgument(f"tolerance is {tolerance}; it must be a number above 0")
    return float(tolerance)
