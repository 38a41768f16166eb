"""A person's sequences as a task that `gradsieve.training` trains on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradsieve.data import Parts, Scaling, Sequences
from gradsieve.model import r_squared
from gradsieve.network import Array, Output
from gradsieve.training import Data, Stacked

MOST_COPIES = 9
ENOUGH = 2000  # sequences


@dataclass(frozen=True, eq=False)
class OwnTask:
    """Training, validation and test sequences, in the units of the network.

    `accuracy` is the share of right classes; in regression it is R², of which a constant guess
    scores 0.
    """

    name: str
    parts: Parts  # raw
    scaling: Scaling
    noise: float = 0.0  # standard deviation of the noise on copies

    @property
    def inputs(self) -> int:
        return self.parts.train.inputs

    @property
    def outputs(self) -> int:
        return self.parts.train.outputs

    @property
    def output(self) -> Output:
        return self.parts.train.output

    @property
    def length(self) -> int:
        """Steps of the longest training sequence."""
        return int(self.parts.train.lengths.max())

    @property
    def tested(self) -> Sequences:
        """The sequences of the test accuracy: the test part, or validation where there is none."""
        return self.parts.test if self.parts.test is not None else self.parts.validation

    @property
    def constant_guess(self) -> float:
        """The score of the most frequent class of the training part; 0 in regression."""
        if self.parts.train.classes is None:
            return 0.0
        guess = np.bincount(self.parts.train.targets).argmax()
        return float((self.tested.targets == guess).mean())

    def accuracy(self, outputs: Array, t: Array) -> float:
        if self.output == "softmax":
            return float((outputs.argmax(axis=-1) == t).mean())
        width = outputs.shape[-1]
        return r_squared(outputs.reshape(-1, width).astype(float), t.reshape(-1, width))

    def data(self) -> Data:
        return Data(
            _stacked(with_noisy_copies(self.scaling.scaled(self.parts.train), self.noise)),
            _stacked(self.scaling.scaled(self.parts.validation)),
            _stacked(self.scaling.scaled(self.tested)),
        )

    def sample_with_starts(self, count: int, seed: int) -> tuple[Array, Array, Array | None]:
        """Training sequences drawn with replacement."""
        train = self.scaling.scaled(self.parts.train)
        chosen = np.random.Generator(np.random.PCG64(seed)).integers(0, train.count, count)
        return train.padded(chosen)


def with_noisy_copies(scaled: Sequences, noise: float) -> Sequences:
    """The sequences and copies of them with noise on every input: fewer to learn by heart.

    Few sequences get nine copies each, many at least one.
    """
    if noise == 0:
        return scaled
    copies = max(1, min(MOST_COPIES, ENOUGH // scaled.count))
    generator = np.random.Generator(np.random.PCG64(0))
    shape = scaled.values.shape
    noisy = [scaled.values + noise * generator.standard_normal(shape) for _ in range(copies)]
    return Sequences(
        values=np.concatenate([scaled.values, *noisy]),
        lengths=np.tile(scaled.lengths, copies + 1),
        targets=np.concatenate([scaled.targets] * (copies + 1)),
        per_step=scaled.per_step,
        classes=scaled.classes,
    )


def _stacked(scaled: Sequences) -> Stacked:
    u, t, starts = scaled.padded()
    return Stacked(
        u.transpose(1, 0, 2),
        np.swapaxes(t, 0, 1) if scaled.per_step else t,
        None if scaled.equal_lengths else starts,
    )
