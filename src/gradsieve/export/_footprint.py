"""What an exported network needs of a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gradsieve.errors import InvalidArgument
from gradsieve.model import Model

WeightFormat = Literal["float32", "int8"]


@dataclass(frozen=True)
class Footprint:
    """Bytes and arithmetic of the C export; code comes on top of `flash` (some 1 kB)."""

    parameters: int
    flash: int  # bytes of constants
    ram: int  # bytes of state
    stack: int  # bytes of local arrays, at most
    multiplications_per_step: int
    multiplications_per_output: int
    tanh_per_step: int


def footprint(model: Model, weights: WeightFormat = "float32") -> Footprint:
    checked_weights(weights)
    net = model.net
    inputs, hidden, outputs = net.inputs, net.hidden, net.outputs
    in_matrices = inputs * hidden + hidden * hidden + hidden * outputs
    scaled = 0 if is_identity(model) else inputs
    shifted = 0 if model.scaling.target_mean is None else outputs
    floats = hidden + outputs + 2 * scaled + 2 * shifted
    row_scales = 2 * hidden + outputs if weights == "int8" else 0
    bytes_each = 1 if weights == "int8" else 4
    return Footprint(
        parameters=int(net.flat.size),
        flash=in_matrices * bytes_each + 4 * (floats + row_scales),
        ram=2 * 4 * hidden,
        stack=4 * max(scaled, outputs if net.output == "softmax" else 0),
        multiplications_per_step=hidden * (inputs + hidden)
        + scaled
        + (2 * hidden if weights == "int8" else 0),
        multiplications_per_output=hidden * outputs
        + shifted
        + (outputs if weights == "int8" else 0),
        tanh_per_step=hidden,
    )


def is_identity(model: Model) -> bool:
    """Whether inputs go in as they are."""
    return bool(np.all(model.scaling.mean == 0) and np.all(model.scaling.spread == 1))


def checked_weights(weights: str) -> None:
    if weights not in ("float32", "int8"):
        raise InvalidArgument(f"weights is {weights!r}; it may be 'float32' or 'int8'")
