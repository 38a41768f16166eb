"""A score with its interval: how sure the test part lets us be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradsieve.data import Sequences
from gradsieve.flow import Engine
from gradsieve.model import Model, r_squared
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


def score(model: Model, data: Sequences, engine: Engine = "native") -> Score:
    """The model's score on these sequences.

    The interval is Wilson's for one class a sequence, and else a bootstrap over whole sequences,
    since the steps of one sequence are not independent.
    """
    targets, outputs = model.targets_of(data), model.outputs(data, engine)
    if model.classes is None:
        value = r_squared(outputs, targets)
        low, high = _bootstrap(data, outputs, targets)
        return Score(value, low, high, None, data.count)
    right = outputs.argmax(axis=1) == targets
    seen = np.unique(targets)
    balanced = float(np.mean([right[targets == number].mean() for number in seen]))
    value = float(right.mean())
    if data.per_step:
        low, high = _bootstrap(data, right[:, None].astype(float), None)
    else:
        low, high = wilson(int(right.sum()), data.count)
    return Score(value, low, high, balanced, data.count)


def wilson(right: int, count: int) -> tuple[float, float]:
    """Wilson's interval for a share: never outside [0, 1], sensible at its ends."""
    share = right / count
    centre = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = (
        Z
        / (1 + Z * Z / count)
        * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    )
    return max(0.0, centre - half), min(1.0, centre + half)


def _bootstrap(data: Sequences, outputs: Array, targets: Array | None) -> tuple[float, float]:
    generator = np.random.Generator(np.random.PCG64(0))
    rows = [
        data.steps_of([number]) if data.per_step else np.array([number])
        for number in range(data.count)
    ]
    values = []
    for _ in range(RESAMPLES):
        drawn = np.concatenate([rows[n] for n in generator.integers(0, data.count, data.count)])
        if targets is None:
            values.append(float(outputs[drawn].mean()))
        else:
            values.append(r_squared(outputs[drawn], targets[drawn]))
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
