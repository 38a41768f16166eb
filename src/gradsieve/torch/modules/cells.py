"""Recurrent cells in one form, for one theory of all of them (docs/theory-gated-cells.md).

A cell reads the step's input and the state before it through two linear maps and then does
something unit by unit:

    x(n) = u(n) W_ihᵀ + b_ih      a(n) = h(n−1) W_hhᵀ + b_hh      s(n) = update(x(n), a(n), s(n−1))

a(n) is the *recurrent product*, δ(n) = ∂E/∂a(n) is the delta: for the tanh cell it is the paper's.
The state s is a tuple whose first part is h. All that gradsieve needs of a cell is `update`; its
first and second derivatives come from autograd, for all steps at once.

Shapes: x and a are (…, G, H) for G gates, a state (…, H); leading axes are any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

State = tuple[Tensor, ...]
Weights = Mapping[str, Tensor]
Update = Callable[[Tensor, Tensor, State, Weights], State]

LINEAR = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


@dataclass(frozen=True)
class Cell:
    """A recurrent cell, described for the sieve.

    Attributes:
        update: (x, a, state, weights) → new state. `weights` are those beyond the two linear maps.
        gates: the names of the G blocks of the recurrent product, in their order.
        states: the number of parts of the state; the first part is the output h.
        unitwise: each unit of the new state depends on x, a and the old state of that unit alone.
            Say False where `update` mixes units (a projection, a normalisation): slower, as right.
        squash: "sigmoid", "tanh" or "relu" for each gate, by which saturation is told, or nothing.
    """

    update: Update
    gates: tuple[str, ...]
    states: int = 1
    unitwise: bool = True
    squash: tuple[str, ...] = ()


def _tanh(x: Tensor, a: Tensor, state: State, weights: Weights) -> State:
    return (torch.tanh(x + a).squeeze(-2),)


def _relu(x: Tensor, a: Tensor, state: State, weights: Weights) -> State:
    return (torch.relu(x + a).squeeze(-2),)


def _gru(x: Tensor, a: Tensor, state: State, weights: Weights) -> State:
    x_reset, x_update, x_new = x.unbind(-2)
    a_reset, a_update, a_new = a.unbind(-2)
    update = torch.sigmoid(x_update + a_update)
    new = torch.tanh(x_new + torch.sigmoid(x_reset + a_reset) * a_new)
    return (new + update * (state[0] - new),)


def _lstm(x: Tensor, a: Tensor, state: State, weights: Weights) -> State:
    input, forget, cell, output = (x + a).unbind(-2)
    c = torch.sigmoid(forget) * state[1] + torch.sigmoid(input) * torch.tanh(cell)
    return torch.sigmoid(output) * torch.tanh(c), c


def _projected_lstm(x: Tensor, a: Tensor, state: State, weights: Weights) -> State:
    h, c = _lstm(x, a, state, weights)
    return h @ weights["weight_hr"].T, c


TANH = Cell(_tanh, ("tanh",), squash=("tanh",))
RELU = Cell(_relu, ("relu",), squash=("relu",))
GRU = Cell(_gru, ("reset", "update", "new"), squash=("sigmoid", "sigmoid", "tanh"))
LSTM = Cell(
    _lstm,
    ("input", "forget", "cell", "output"),
    states=2,
    squash=("sigmoid", "sigmoid", "tanh", "sigmoid"),
)
PROJECTED_LSTM = Cell(_projected_lstm, LSTM.gates, states=2, unitwise=False, squash=LSTM.squash)


def drive(inputs: Tensor, weights: Weights, gates: int) -> Tensor:
    """x for all steps at once, (…, G, H)."""
    return _blocks(inputs, weights["weight_ih"], weights.get("bias_ih"), gates)


def recur(h: Tensor, weights: Weights, gates: int) -> Tensor:
    """a from the h before, (…, G, H)."""
    return _blocks(h, weights["weight_hh"], weights.get("bias_hh"), gates)


def beyond_linear(weights: Weights) -> dict[str, Tensor]:
    """The weights that `update` itself uses."""
    return {name: value for name, value in weights.items() if name not in LINEAR}


def _blocks(values: Tensor, weight: Tensor, bias: Tensor | None, gates: int) -> Tensor:
    return in_blocks(torch.nn.functional.linear(values, weight, bias), gates)


def in_blocks(values: Tensor, gates: int) -> Tensor:
    """(…, G·H) as (…, G, H)."""
    return values.reshape(*values.shape[:-1], gates, -1)
