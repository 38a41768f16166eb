"""Training, validation and test sequences, held so that a minibatch is one cheap gather."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from gradsieve.errors import InvalidArgument
from gradsieve.flow import checked_batch
from gradsieve.network import SRN, Array, Output
from gradsieve.tasks import Task


class Problem(Protocol):
    """A problem that a network can be trained on: a task of `gradsieve.tasks`, or one of your own.

    A task draws new sequences (`sample_with_starts`) or, with `OwnSequences`, brings its own.
    """

    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def output(self) -> Output: ...
    @property
    def constant_guess(self) -> float: ...
    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]: ...
    def accuracy(self, outputs: Array, t: Array) -> float: ...


@dataclass(frozen=True)
class TaskVariant:
    """A task whose sequences are chosen in another way; the rest is as the task has it."""

    task: Task

    @property
    def name(self) -> str:
        return self.task.name

    @property
    def inputs(self) -> int:
        return self.task.inputs

    @property
    def outputs(self) -> int:
        return self.task.outputs

    @property
    def output(self) -> Output:
        return self.task.output

    @property
    def constant_guess(self) -> float:
        return self.task.constant_guess

    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]:
        return self.task.sample_with_starts(count, seed)

    def accuracy(self, outputs: Array, t: Array) -> float:
        return self.task.accuracy(outputs, t)


@dataclass(frozen=True)
class Stacked:
    """N sequences: u (N,T,I), t (N,…) and, where lengths differ, starts (N,)."""

    u: Array
    t: Array
    starts: Array | None = None

    def __len__(self) -> int:
        return len(self.u)

    def batch(self, indices: Array | slice) -> tuple[Array, Array, Array | None]:
        """u (T,B,I), t and starts of these sequences; time first, without another copy."""
        t = self.t[indices]
        return (
            self.u[indices].transpose(1, 0, 2),
            t if not self.per_step else np.swapaxes(t, 0, 1),
            None if self.starts is None else self.starts[indices],
        )

    def first(self, count: int) -> Stacked:
        """The first of these sequences."""
        starts = None if self.starts is None else self.starts[:count]
        return Stacked(self.u[:count], self.t[:count], starts)

    @property
    def per_step(self) -> bool:
        return self.t.ndim == (2 if self.t.dtype.kind in "iu" else 3)


@dataclass(frozen=True)
class Data:
    """The training, validation and test sequences of one run."""

    train: Stacked
    validation: Stacked
    test: Stacked


@runtime_checkable
class OwnSequences(Protocol):
    """A task that brings a fixed set of sequences instead of drawing them."""

    def data(self) -> Data: ...


@runtime_checkable
class AnyLength(Protocol):
    """A task that is the same task over sequences of any length, as `stages` need it."""

    def of_length(self, length: int) -> Problem: ...


def draw(task: Problem, net: SRN, sizes: tuple[int, int, int], seed: int) -> Data:
    """The run's data, checked once against the network so that the loop need not."""
    if isinstance(task, OwnSequences):
        own = task.data()
        return Data(*(_checked(part, net) for part in (own.train, own.validation, own.test)))
    return Data(*(_drawn(task, net, count, seed, part) for part, count in enumerate(sizes)))


def draw_stage(task: Problem, net: SRN, length: int, count: int, seed: int) -> Stacked:
    """Training sequences of a stage: of the same task, over another length."""
    if not isinstance(task, AnyLength):
        raise InvalidArgument(
            f"stages: the task {task.name} cannot be drawn over {length} steps; it needs a method "
            "of_length(length), as the tasks of gradsieve.tasks have"
        )
    return _drawn(task.of_length(length), net, count, seed, part=0)


def _drawn(task: Problem, net: SRN, count: int, seed: int, part: int) -> Stacked:
    part_seed = np.random.SeedSequence(seed).generate_state(3)[part]
    u, t, starts = task.sample_with_starts(count, int(part_seed))
    drawn = Stacked(u.transpose(1, 0, 2), t, starts)
    if drawn.per_step:  # drawn time first
        drawn = Stacked(drawn.u, np.swapaxes(t, 0, 1), starts)
    return _checked(drawn, net)


def _checked(part: Stacked, net: SRN) -> Stacked:
    u, t, starts = checked_batch(net, *part.batch(slice(None)))
    return Stacked(
        np.ascontiguousarray(u.transpose(1, 0, 2)),
        np.ascontiguousarray(np.swapaxes(t, 0, 1)) if part.per_step else t,
        starts,
    )
