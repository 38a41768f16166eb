"""Models of every kind with data that they can take, for the tests of what is exported."""

from __future__ import annotations

import numpy as np

from gradsieve.data import Scaling, Sequences, from_arrays
from gradsieve.model import Model
from gradsieve.network import SRN


def model_and_data(
    kind: str = "classification",
    per_step: bool = False,
    hidden: int = 9,
    lengths: tuple[int, ...] = (1, 12, 40, 40),
    seed: int = 0,
) -> tuple[Model, Sequences]:
    """A network of radius above 1, so that errors would grow, on data far from zero."""
    generator = np.random.default_rng(seed)
    sequences = [  # in float32, as a device would see them
        (generator.standard_normal((length, 3)) * [1e-3, 1, 50] + [5, 0, -100]).astype(np.float32)
        for length in lengths
    ]
    count = sum(lengths) if per_step else len(lengths)
    if kind == "classification":
        classes = ("stand still", 'say "?"\\', "é*/")
        data = from_arrays(sequences, np.arange(count) % 3, classes, per_step)
    else:
        data = from_arrays(sequences, generator.standard_normal((count, 2)) * 30, None, per_step)
    net = SRN.random(3, hidden, data.outputs, data.output, variance=1.5 / hidden, seed=seed)
    net.b[:] = generator.standard_normal(hidden)
    net.b_out[:] = generator.standard_normal(data.outputs)
    model = Model(
        net,
        scaling=Scaling.of(data),
        classes=data.classes,
        features=data.features,
        per_step=per_step,
        equal_lengths=data.equal_lengths,
    )
    return model, data
