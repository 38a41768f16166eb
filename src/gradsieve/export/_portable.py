"""A network as an export needs it: weights in PyTorch's layout, one row a gate of a unit.

`portable` makes one from a gradsieve `Model`, `from_torch` from PyTorch's modules. Its `outputs`
are computed in float64 NumPy, one step after the other, as a device does: the files that are
written are checked against them. With a = W x + U h + b, gate by gate:

    tanh, relu   h' = f(a)
    gru          r, z = σ(a),     n = tanh(W x + b + r ∘ (U h + b_n)),  h' = (1 − z) ∘ n + z ∘ h
    lstm         i, f, o = σ(a),  g = tanh(a),  c' = f ∘ c + i ∘ g,     h' = o ∘ tanh(c')

Rows of W, U and b stand in PyTorch's order of gates: r, z, n and i, f, g, o.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from gradsieve.data import Missing, Sequences, filled
from gradsieve.errors import InvalidArgument, one_of
from gradsieve.files import write_atomically
from gradsieve.model import PREDICTED_AT_ONCE, Answers, Model
from gradsieve.network import Array, Output
from gradsieve.reference.cells import CELLS
from gradsieve.tensors import tensor_bytes

Cell = Literal["tanh", "relu", "gru", "lstm"]
FORMAT = "gradsieve-recurrent-1"  # of a saved `Portable`
GATES: dict[Cell, int] = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of one recurrent layer in float32."""

    w_ih: Array  # (gates · H, inputs of the layer): W
    w_hh: Array  # (gates · H, H): U
    b: Array  # (gates · H,): both biases of PyTorch, added up
    b_n: Array = field(
        default_factory=lambda: np.zeros(0, np.float32)
    )  # (H,): gru only, the bias of U h in n; b has that of W x

    @property
    def hidden(self) -> int:
        return int(self.w_hh.shape[1])

    @property
    def recurrent_bias(self) -> Array:
        """PyTorch's bias_hh where `b` is its bias_ih: `b_n` in the candidate's rows, else zero."""
        bias = np.zeros_like(self.b)
        if self.b_n.size:
            bias[-self.b_n.size :] = self.b_n
        return bias


@dataclass(frozen=True, eq=False)
class Portable(Answers):
    """A recurrent network with a linear read-out, between raw inputs and answers."""

    cell: Cell
    layers: tuple[Layer, ...]
    w_out: Array  # (O, H)
    b_out: Array  # (O,)
    output: Output

    def __post_init__(self) -> None:
        one_of("cell", self.cell, get_args(Cell))
        inputs = self.inputs
        for number, layer in enumerate(self.layers):
            rows = GATES[self.cell] * self.hidden
            for name, shape in (("w_ih", (rows, inputs)), ("w_hh", (rows, self.hidden)),
                                ("b", (rows,))):  # fmt: skip
                found = getattr(layer, name).shape
                if found != shape:
                    raise InvalidArgument(
                        f"{name} of layer {number} has shape {found}; a {self.cell} layer of "
                        f"{self.hidden} units needs {shape}"
                    )
            inputs = self.hidden
        if self.w_out.shape != (self.outputs_each, self.hidden):
            raise InvalidArgument(
                f"the head's weight has shape {self.w_out.shape}; it must be (outputs, "
                f"{self.hidden})"
            )
        for name, names, size in (("classes", self.classes, self.outputs_each),
                                  ("features", self.features, self.inputs)):  # fmt: skip
            if names is not None and len(names) != size:
                raise InvalidArgument(f"{name} has {len(names)} names; there must be {size}")
        if (self.classes is None) != (self.output == "linear"):
            raise InvalidArgument(f"classes do not go with a {self.output} output")

    @property
    def inputs(self) -> int:
        return int(self.layers[0].w_ih.shape[1])

    @property
    def hidden(self) -> int:
        return self.layers[0].hidden

    @property
    def outputs_each(self) -> int:
        return len(self.b_out)

    @property
    def missing(self) -> Missing:
        return self.preparation.missing

    @property
    def matrices(self) -> list[Array]:
        return [matrix for layer in self.layers for matrix in (layer.w_ih, layer.w_hh)] + [
            self.w_out
        ]

    @property
    def vectors(self) -> list[Array]:
        return [bias for layer in self.layers for bias in (layer.b, layer.b_n)] + [self.b_out]

    @property
    def parameters(self) -> int:
        return sum(array.size for array in (*self.matrices, *self.vectors))

    def outputs(self, data: Sequences) -> Array:
        """Probabilities or values in the data's units: (N,O), or (steps,O) if per step."""
        self.check_inputs(data)
        data = filled(data, self.missing, self.scaling.mean)
        found = np.empty((len(data.values) if self.per_step else data.count, self.outputs_each))
        order = np.argsort(data.lengths, kind="stable")  # neighbours of like length: less padding
        for first in range(0, data.count, PREDICTED_AT_ONCE):
            chosen = order[first : first + PREDICTED_AT_ONCE]
            lengths, rows = data.lengths[chosen], data.steps_of(chosen)
            inside = np.arange(lengths.max()) < lengths[:, None]  # (B,T)
            u = np.zeros((*inside.shape, self.inputs))
            u[inside] = self.scaling.inputs(data.values[rows])
            h = self.states(u.swapaxes(0, 1)).swapaxes(0, 1)
            if self.per_step:
                found[rows] = self.answers(h[inside])
            else:
                found[chosen] = self.answers(h[np.arange(len(chosen)), lengths - 1])
        return found

    def states(self, values: Array) -> Array:
        """(T,B,H): the last layer's state after each step of scaled sequences (T,B,I)."""
        for layer in self.layers:
            values = _run(self.cell, layer, values)
        return values

    def answers(self, states: Array) -> Array:
        """(…,O): the answer that each state (…,H) gives."""
        y = states @ self.w_out.T.astype(np.float64) + self.b_out
        if self.output == "linear":
            return self.scaling.outputs(y)
        powers = np.exp(y - y.max(axis=-1, keepdims=True))
        probabilities: Array = powers / powers.sum(axis=-1, keepdims=True)
        return probabilities

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a safetensors file whose tensors are named as PyTorch names them."""
        arrays = {"head.weight": self.w_out, "head.bias": self.b_out}
        for number, layer in enumerate(self.layers):
            arrays |= {
                f"recurrent.weight_ih_l{number}": layer.w_ih,
                f"recurrent.weight_hh_l{number}": layer.w_hh,
                f"recurrent.bias_ih_l{number}": layer.b,
                f"recurrent.bias_hh_l{number}": layer.recurrent_bias,
            }
        about = {
            "cell": self.cell,
            "output": self.output,
            "layers": str(len(self.layers)),
            "model": json.dumps(self.named()),
        }
        write_atomically(Path(path), tensor_bytes(arrays, {"format": FORMAT} | about))


def _run(cell: Cell, layer: Layer, x: Array) -> Array:
    """(T,B,H): a layer's states over sequences side by side."""
    back_by, bias = layer.w_hh.T.astype(np.float64), layer.recurrent_bias
    driven = x @ layer.w_ih.T.astype(np.float64) + layer.b
    h, c = np.zeros((2, x.shape[1], layer.hidden))
    states = np.empty((*x.shape[:2], layer.hidden))
    for step, a in enumerate(driven):
        (h, c), _ = CELLS[cell](a, h @ back_by + bias, (h, c))
        states[step] = h
    return states


def portable(model: Model | Portable) -> Portable:
    """A gradsieve model in the layout of the exports; a portable network as it is."""
    if isinstance(model, Portable):
        return model
    net = model.net
    single = {name: np.asarray(value.T, dtype=np.float32) for name, value in net.fields().items()}
    return Portable(
        cell="tanh",
        layers=(Layer(single["w_in"], single["w_rec"], single["b"]),),
        w_out=single["w_out"],
        b_out=single["b_out"],
        output=net.output,
        **{item.name: getattr(model, item.name) for item in fields(Answers)},
    )
