"""Tasks as others drew them, where that is no convention of `gradsieve.tasks`.

Mixed lengths: Pascanu, Mikolov & Bengio (2013) train one network on lengths from 50 to 200. Theirs
draw one length for each minibatch; here every sequence has its own.

Halves: the adding problem of Arjovsky, Shah & Bengio (2016), which coRNN (Rusch & Mishra 2021) and
LEM (Rusch et al. 2022) use: values in (0,1), one mark in each half of the sequence, the target is
the sum. They report its mean squared error, of which a constant guess has 0.167.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gradsieve import tasks
from gradsieve.network import Array, Output
from gradsieve.tasks import Convention, Task, adding
from gradsieve.training.data import TaskVariant

MIXED, HALVES = "mixed lengths", "adding, halves"
SHORTEST = 50
BLANK_FIRST = ("copy_memory", "memorization")  # blanks before a sequence of these are part of it


@dataclass(frozen=True)
class MixedLengths(TaskVariant):
    """A task over lengths from `shortest` to its own, each as likely; aligned at the end."""

    shortest: int

    @property
    def name(self) -> str:
        return f"{self.task.name}, {MIXED}"

    @property
    def length(self) -> int:
        return self.task.length

    @property
    def tolerance(self) -> float | None:
        return self.task.tolerance

    def of_length(self, length: int) -> Task:
        """The same task, every sequence over this length."""
        return _of(self.task.name, length)

    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]:
        generator = np.random.Generator(np.random.PCG64(seed))
        lengths = generator.integers(self.shortest, self.length, count, endpoint=True)
        u, t = (part.copy() for part in self.task.sample(count, seed))
        starts = np.zeros(count, np.int64)
        blank = self.task.name in BLANK_FIRST
        for length in np.unique(lengths):
            own = np.flatnonzero(lengths == length)
            its_u, its_t = self.of_length(int(length)).sample(
                len(own), int(generator.integers(2**32))
            )
            before = len(u) - len(its_u)
            starts[own] = before
            u[:before, own] = 0
            u[before:, own] = its_u
            if blank:
                u[:before, own, -2] = 1
                t[:before, own] = self.outputs - 1
                t[before:, own] = its_t
            else:
                t[own] = its_t
        return u, t, None if blank else starts


def _of(name: str, length: int) -> Task:
    convention: Convention = "pascanu" if name in tasks.PAPERS else "author"
    return replace(tasks.by_name(name, length, convention), spare=0)


def mixed_lengths(base: str, longest: int) -> MixedLengths:
    """The task over lengths from 50, or a quarter of the longest, on.

    >>> task = mixed_lengths("adding", 200)
    >>> u, t, starts = task.sample_with_starts(300, seed=0)
    >>> u.shape, t.shape, bool(starts.min() < 20 and starts.max() > 130)
    ((200, 300, 2), (300, 1), True)
    """
    return MixedLengths(_of(base, longest), min(SHORTEST, longest // 4))


@dataclass(frozen=True)
class AddingHalves:
    """One mark in each half; the target is the sum of the marked values.

    >>> u, t, _ = AddingHalves(100).sample_with_starts(1000, seed=0)
    >>> bool((u[:50, :, 1].sum(axis=0) == 1).all() and abs(t.mean() - 1) < 0.05)
    True
    """

    length: int

    name = HALVES
    inputs, outputs = 2, 1
    output: Output = "linear"
    tolerance = 0.4  # twice that of the mean (a+b)/2 in Pascanu's convention, err² ≤ 0.04
    constant_guess = adding(100, "pascanu").constant_guess

    def of_length(self, length: int) -> AddingHalves:
        return replace(self, length=length)

    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]:
        generator = np.random.Generator(np.random.PCG64(seed))
        half, each = self.length // 2, np.arange(count)
        u = np.zeros((self.length, count, 2), np.float32)
        u[:, :, 0] = generator.random((self.length, count), dtype=np.float32)
        first = generator.integers(0, half, count)
        second = generator.integers(half, self.length, count)
        u[first, each, 1] = u[second, each, 1] = 1
        return u, (u[first, each, 0] + u[second, each, 0])[:, None], None

    def accuracy(self, outputs: Array, t: Array) -> float:
        return float((np.abs(outputs - t) <= self.tolerance).mean())
