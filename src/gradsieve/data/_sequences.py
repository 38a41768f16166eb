"""`Sequences`, which every reader returns: of any lengths, with targets, in raw units.

All values lie in one array, one row a time step, sequence after sequence; nothing is padded until
a minibatch is made. `padded` aligns sequences at their end, which is how `gradsieve.flow` treats
unequal lengths exactly (its `starts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from gradsieve.data._preparation import Preparation
from gradsieve.errors import InvalidArgument
from gradsieve.network import Array, Output

Kind = Literal["classification", "regression"]


class Batch(NamedTuple):
    """Sequences side by side, time first, aligned at their end: what `backpropagate` takes."""

    u: Array  # (T,B,I)
    t: Array  # (B,) or (T,B) classes, (B,O) or (T,B,O) values
    starts: Array  # (B,) leading steps that are not part of each sequence


@dataclass(frozen=True, eq=False)
class Sequences:
    """N sequences, their targets and their names."""

    values: Array  # (steps of all sequences, I) float64
    lengths: Array  # (N,) int64, each at least 1
    targets: Array  # int64 classes (N,) or (steps,); float64 values (N,O) or (steps,O)
    per_step: bool  # a target at every step, or one a sequence
    classes: tuple[str, ...] | None  # None: regression
    names: tuple[str, ...] = ()  # of the sequences
    features: tuple[str, ...] = ()
    preparation: Preparation = Preparation()
    offsets: Array = field(init=False, repr=False)  # (N+1,) where each sequence begins

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", np.concatenate([[0], np.cumsum(self.lengths)]))
        if not self.names:
            object.__setattr__(self, "names", tuple(str(n) for n in range(1, self.count + 1)))
        if not self.features:
            names = tuple(f"input {n}" for n in range(1, self.inputs + 1))
            object.__setattr__(self, "features", names)
        self._check()

    @property
    def count(self) -> int:
        return len(self.lengths)

    @property
    def inputs(self) -> int:
        return int(self.values.shape[1])

    @property
    def outputs(self) -> int:
        return len(self.classes) if self.classes is not None else int(self.targets.shape[-1])

    @property
    def output(self) -> Output:
        return "linear" if self.classes is None else "softmax"

    @property
    def kind(self) -> Kind:
        return "regression" if self.classes is None else "classification"

    @property
    def equal_lengths(self) -> bool:
        return bool((self.lengths == self.lengths[0]).all())

    def steps_of(self, chosen: ArrayLike) -> Array:
        """Rows of `values` that belong to these sequences, in order."""
        rows = [np.arange(self.offsets[n], self.offsets[n + 1]) for n in np.asarray(chosen)]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    def subset(self, chosen: ArrayLike) -> Sequences:
        """These sequences alone, in this order; the classes stay as they are."""
        chosen = np.asarray(chosen, dtype=np.int64)
        steps = self.steps_of(chosen)
        return Sequences(
            values=self.values[steps],
            lengths=self.lengths[chosen],
            targets=self.targets[steps if self.per_step else chosen],
            per_step=self.per_step,
            classes=self.classes,
            names=tuple(self.names[n] for n in chosen),
            features=self.features,
            preparation=self.preparation,
        )

    def padded(self, chosen: ArrayLike | None = None, dtype: DTypeLike = np.float32) -> Batch:
        """A minibatch of these sequences (all by default); the steps before a sequence are zero."""
        chosen = np.arange(self.count) if chosen is None else np.asarray(chosen, dtype=np.int64)
        lengths = self.lengths[chosen]
        longest = int(lengths.max())
        steps = self.steps_of(chosen)
        column = np.repeat(np.arange(len(chosen)), lengths)
        row = steps - np.repeat(self.offsets[chosen + 1], lengths) + longest
        u = np.zeros((longest, len(chosen), self.inputs), dtype=dtype)
        with np.errstate(over="ignore"):  # the network refuses values that float32 cannot hold
            u[row, column] = self.values[steps]
        if self.per_step:
            t = np.zeros((longest, len(chosen), *self.targets.shape[1:]), dtype=self.targets.dtype)
            t[row, column] = self.targets[steps]
        else:
            t = self.targets[chosen]
        return Batch(u, t if self.classes is not None else t.astype(dtype), longest - lengths)

    def class_counts(self) -> dict[str, int]:
        """How many targets each class has."""
        if self.classes is None:
            return {}
        counts = np.bincount(self.targets, minlength=len(self.classes))
        return dict(zip(self.classes, counts.tolist(), strict=True))

    def _check(self) -> None:
        steps = int(self.offsets[-1])
        if self.values.ndim != 2 or len(self.values) != steps or self.values.shape[1] < 1:
            raise InvalidArgument(
                f"values has shape {self.values.shape}; the lengths ask for ({steps}, inputs)"
            )
        if self.count < 1 or self.lengths.min() < 1:
            raise InvalidArgument("there must be at least one sequence, and none may be empty")
        expected = steps if self.per_step else self.count
        axes = 2 if self.classes is None else 1
        if self.targets.ndim != axes or len(self.targets) != expected:
            raise InvalidArgument(
                f"targets have shape {self.targets.shape}; {expected} of them are needed, "
                f"in {axes} axes"
            )
        if self.preparation.lengths == "refuse" and not self.equal_lengths:
            longest, shortest = int(self.lengths.max()), int(self.lengths.min())
            raise InvalidArgument(
                f"series have {shortest} to {longest} steps; lengths is 'refuse', so all must have "
                "the same number"
            )
        if len(self.names) != self.count or len(self.features) != self.inputs:
            raise InvalidArgument("names must name every sequence, and features every input")


def from_arrays(
    sequences: Sequence[ArrayLike],
    targets: ArrayLike,
    classes: Sequence[str] | None = None,
    per_step: bool = False,
    features: Sequence[str] = (),
) -> Sequences:
    """Sequences that are in memory already: each (steps, I), targets concatenated if per step.

    >>> data = from_arrays([[[0.0], [1.0]], [[2.0]]], [0, 1], classes=("low", "high"))
    >>> data.padded().starts.tolist()
    [0, 1]
    """
    arrays = [np.asarray(sequence, dtype=np.float64) for sequence in sequences]
    if not arrays:
        raise InvalidArgument("sequences is empty; there must be at least one")
    widths = {array.shape[1:] for array in arrays}
    if len(widths) != 1 or arrays[0].ndim != 2:
        raise InvalidArgument(
            f"sequences have shapes such as {arrays[0].shape} and {arrays[-1].shape}; each must be "
            "(steps, inputs) with the same inputs"
        )
    return Sequences(
        values=np.concatenate(arrays),
        lengths=np.array([len(array) for array in arrays], dtype=np.int64),
        targets=np.asarray(targets, dtype=np.float64 if classes is None else np.int64),
        per_step=per_step,
        classes=None if classes is None else tuple(classes),
        features=tuple(features),
    )
