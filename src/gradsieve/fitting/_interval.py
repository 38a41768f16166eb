"""A score with its 95 % interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradsieve.data import Sequences
from gradsieve.model import Answers, r_squared
from gradsieve.network import Array

Z = 1.959964  # of a normal, for 95 %
RESAMPLES = 1000


@dataclass(frozen=True)
class Score:
    """Accuracy or R² on some sequences, with a 95 % interval."""

    value: float
    low: float
    high: float
    balanced: float | None  # mean of the accuracies on each class
    sequences: int


def score(model: Answers, data: Sequences) -> Score:
    """The model's score on these sequences.

    The interval of an accuracy is Wilson's, with as many trials as there are sequences also where
    there is a target at every step: steps of one sequence may all stand and fall together. That of
    R² is a bootstrap over whole sequences.
    """
    targets, outputs = model.targets_of(data), model.outputs(data)
    if model.classes is None:
        value = r_squared(outputs, targets)
        low, high = _bootstrap(data, outputs, targets)
        return Score(value, low, high, None, data.count)
    right = outputs.argmax(axis=1) == targets
    seen = np.unique(targets)
    balanced = float(np.mean([right[targets == number].mean() for number in seen]))
    value = float(right.mean())
    low, high = wilson(value, data.count)
    return Score(value, low, high, balanced, data.count)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's interval for a share of `count` trials: sensible also at 0 and 1."""
    centre = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = (
        Z
        / (1 + Z * Z / count)
        * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    )
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))


def _bootstrap(data: Sequences, outputs: Array, targets: Array) -> tuple[float, float]:
    generator = np.random.Generator(np.random.PCG64(0))
    rows = [
        data.steps_of([number]) if data.per_step else np.array([number])
        for number in range(data.count)
    ]
    values = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([rows[n] for n in generator.integers(0, data.count, data.count)])
        values.append(r_squared(outputs[drawn], targets[drawn]))
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
