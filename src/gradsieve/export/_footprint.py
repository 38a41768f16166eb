"""The memory and the arithmetic that an exported network needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gradsieve.errors import one_of
from gradsieve.export._portable import Cell, Portable, portable
from gradsieve.model import Model

WeightFormat = Literal["float32", "int8"]
TANH: dict[Cell, int] = {"tanh": 1, "relu": 0, "gru": 3, "lstm": 5}  # of a unit in a step
PRODUCTS: dict[Cell, int] = {"tanh": 0, "relu": 0, "gru": 7, "lstm": 9}  # beside the matrices


@dataclass(frozen=True)
class Footprint:
    """Bytes and arithmetic of the C export; code comes on top of `flash` (some 1 kB)."""

    parameters: int
    flash: int  # bytes of constants
    ram: int  # bytes of state
    stack: int  # bytes of local arrays, at most
    multiplications_per_step: int
    multiplications_per_output: int
    tanh_per_step: int  # a logistic gate is a tanh


def footprint(model: Model | Portable, weights: WeightFormat = "float32") -> Footprint:
    """Count the bytes and operations of this network's C header."""
    one_of("weights", weights, get_args(WeightFormat))
    network = portable(model)
    inputs, hidden, outputs = network.inputs, network.hidden, network.outputs_each
    int8 = weights == "int8"
    scaled = 0 if is_identity(network) else inputs
    copied = inputs if scaled or network.missing != "refuse" else 0
    shifted = 0 if network.scaling.target_mean is None else outputs
    matrices, depth = network.matrices, len(network.layers)
    floats = sum(bias.size for bias in network.vectors) + 2 * scaled + 2 * shifted
    rows = sum(len(matrix) for matrix in matrices) if int8 else 0
    in_steps = matrices[:-1]
    return Footprint(
        parameters=network.parameters,
        flash=sum(matrix.size for matrix in matrices) * (1 if int8 else 4) + 4 * (floats + rows),
        ram=4 * hidden * (depth * (2 if network.cell == "lstm" else 1) + 1)
        + (4 * inputs if network.missing == "last" else 0),
        stack=4 * max(copied, outputs if network.output == "softmax" else 0),
        multiplications_per_step=sum(matrix.size for matrix in in_steps)
        + PRODUCTS[network.cell] * hidden * depth
        + scaled
        + (sum(len(matrix) for matrix in in_steps) if int8 else 0),
        multiplications_per_output=hidden * outputs + shifted + (outputs if int8 else 0),
        tanh_per_step=TANH[network.cell] * hidden * depth,
    )


def is_identity(model: Portable) -> bool:
    """Whether inputs go in as they are."""
    return bool(np.all(model.scaling.mean == 0) and np.all(model.scaling.spread == 1))
