"""Training, validation and test parts, by series, from a seed.

Whole series go to one part, so that no step of a test series is seen in training. Classes are
spread evenly over the parts where there is one class a series.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradsieve.data._sequences import Sequences
from gradsieve.errors import InvalidArgument
from gradsieve.network import Array


@dataclass(frozen=True)
class Parts:
    train: Sequences
    validation: Sequences
    test: Sequences | None


def split(data: Sequences, validation: float = 0.2, test: float = 0.2, seed: int = 0) -> Parts:
    """Split by series; `test=0` leaves no test part (where it comes from a file of its own)."""
    for name, share in (("validation", validation), ("test", test)):
        if not 0 <= share < 1:
            raise InvalidArgument(f"{name} is {share}; it must be a share from 0 to below 1")
    if validation + test >= 1 or validation == 0:
        raise InvalidArgument(
            f"validation is {validation} and test {test}; validation must be more than 0 and both "
            "must leave something to train on"
        )
    check_trainable(data)
    generator = np.random.Generator(np.random.PCG64(seed))
    chosen = _assign(data, validation, test, generator)
    parts = [np.flatnonzero(chosen == part) for part in range(3)]
    if not parts[0].size or not parts[1].size or (test and not parts[2].size):
        raise InvalidArgument(
            f"{data.count} series are too few to split into training, validation and test (a class "
            "with one series has it in training); give more series, or other shares"
        )
    return Parts(
        train=data.subset(parts[0]),
        validation=data.subset(parts[1]),
        test=data.subset(parts[2]) if test else None,
    )


def check_trainable(data: Sequences) -> None:
    """Refuse data from which nothing can be learned."""
    if data.classes is not None and sum(count > 0 for count in data.class_counts().values()) < 2:
        only = next((name for name, count in data.class_counts().items() if count), "none")
        raise InvalidArgument(
            f"the target has one class only, {only[:60]!r}; a classifier needs at least two. If it "
            "is a quantity, say kind 'regression'"
        )
    if data.classes is None and bool((data.targets == data.targets[0]).all()):
        raise InvalidArgument(
            f"every target is {data.targets[0].tolist()}; there is nothing to learn from it"
        )


def _assign(
    data: Sequences, validation: float, test: float, generator: np.random.Generator
) -> Array:
    """The part of each series: 0 train, 1 validation, 2 test.

    Within a class the series, shuffled, take turns so that the shares come out as even as whole
    series allow over all classes together; the first series of every class is for training.
    """
    part = np.zeros(data.count, dtype=np.int64)
    owed = np.zeros(3)
    shares = np.array([1 - validation - test, validation, test])
    stratified = data.classes is not None and not data.per_step
    groups = data.targets if stratified else np.zeros(data.count, dtype=np.int64)
    ordered = np.argsort(groups, kind="stable")
    _, firsts = np.unique(groups[ordered], return_index=True)
    for group in np.split(ordered, firsts[1:]):
        members = generator.permutation(group)
        for turn, member in enumerate(members):
            owed += shares
            choice = 0 if turn == 0 else int(np.argmax(owed))
            owed[choice] -= 1
            part[member] = choice
    return part
