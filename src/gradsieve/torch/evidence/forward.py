"""Forward through a stack of recurrent layers again, where the module's outputs do not say it.

The fused kernels of PyTorch keep their gates to themselves, so the outputs h are computed a second
time (without a graph), or taken as they were recorded; then the products x and a that belong to
them, all steps at once, where they are asked for. Nothing here builds a graph.

Every direction has its *own time*: step 1 is the first that it reads. For the reverse direction
that is a sequence's last step. Sequences of unequal length all begin at step 1 and end at their
own length; what stands after that is never read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradsieve.torch.fast.layer import Passes
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import Cell, State
from gradsieve.torch.modules.stack import LayerWeights


@dataclass(frozen=True)
class Steps:
    """A layer run step by step: its states s(1) … s(T) and its products a, all (T,B,…)."""

    after: State
    a: Tensor


@dataclass(frozen=True)
class LayerRun:
    """One layer in one direction, in its own time; all of it (T,B,…)."""

    cell: Cell
    weights: LayerWeights
    u: Tensor
    initial: State
    h: Tensor
    steps: Steps | None = None  # where its states do not follow from h
    passes: Passes | None = None  # where its gates are known

    @cached_property
    def after(self) -> State:
        """s(1) … s(T)."""
        if self.steps is not None:
            return self.steps.after
        if self.cell is not cells.LSTM:
            return (self.h,)
        return self.h, _lstm_memory(self.x + self.a, self.initial[1])

    @cached_property
    def before(self) -> State:
        """s(0) … s(T−1)."""
        return tuple(map(_shifted, self.initial, self.after))

    @cached_property
    def x(self) -> Tensor:
        return cells.drive(self.u, self.weights, len(self.cell.gates))

    @cached_property
    def a(self) -> Tensor:
        if self.steps is not None:
            return self.steps.a
        before = _shifted(self.initial[0], self.h)
        return cells.recur(before, self.weights, len(self.cell.gates))


def _shifted(initial: Tensor, after: Tensor) -> Tensor:
    return torch.cat([initial.unsqueeze(0), after[:-1]])


def in_own_time(values: Tensor, direction: int, lengths: Tensor | None) -> Tensor:
    """(T,B,…) from true time to a direction's own time, or back: the same for both."""
    if direction == 0:
        return values
    if lengths is None:
        return values.flip(0)
    steps = torch.arange(values.shape[0], device=values.device).unsqueeze(1)
    mirrored = torch.where(steps < lengths, lengths - 1 - steps, steps)
    index = mirrored.reshape(mirrored.shape + (1,) * (values.dim() - 2)).expand_as(values)
    return values.gather(0, index)


def run_layer(
    cell: Cell, weights: LayerWeights, u: Tensor, initial: State, h: Tensor | None = None
) -> LayerRun:
    """Run one layer over u; `h` are its outputs where they are known already."""
    if h is None and cell in _FUSED:
        h = _FUSED[cell](u, initial, weights)
    if h is not None and (cell.states == 1 or cell is cells.LSTM):
        return LayerRun(cell, weights, u, initial, h)
    gates, extra = len(cell.gates), cells.beyond_linear(weights)
    state, states, products = initial, [], []
    for x in cells.drive(u, weights, gates).unbind(0):
        products.append(cells.recur(state[0], weights, gates))
        state = cell.update(x, products[-1], state, extra)
        states.append(state)
    after = tuple(torch.stack(part) for part in zip(*states, strict=True))
    return LayerRun(cell, weights, u, initial, after[0], Steps(after, torch.stack(products)))


def _lstm_memory(v: Tensor, c: Tensor) -> Tensor:
    """c(1) … c(T) from the products v, when every h is known: only c's own recursion is left."""
    input, forget, cell, _ = v.unbind(-2)
    written, kept = torch.sigmoid(input) * torch.tanh(cell), torch.sigmoid(forget)
    rows = []
    for gain, factor in zip(written.unbind(0), kept.unbind(0), strict=True):
        c = torch.addcmul(gain, factor, c)
        rows.append(c)
    return torch.stack(rows)


def _flat(weights: LayerWeights) -> tuple[list[Tensor], bool]:
    """Weights as the fused kernels take them: both biases, or none."""
    biased = "bias_ih" in weights or "bias_hh" in weights
    matrices = [weights["weight_ih"], weights["weight_hh"]]
    zero = weights["weight_hh"].new_zeros(weights["weight_hh"].shape[0])
    biases = [weights.get(name, zero) for name in ("bias_ih", "bias_hh")]
    return matrices + (biases if biased else []), biased


def _fused_simple(
    kernel: Callable[..., tuple[Tensor, Tensor]], u: Tensor, initial: State, weights: LayerWeights
) -> Tensor:
    flat, biased = _flat(weights)
    state = initial[0].unsqueeze(0)
    return kernel(u, state, flat, biased, 1, 0.0, False, False, False)[0]


def _fused_lstm(u: Tensor, initial: State, weights: LayerWeights) -> Tensor:
    flat, biased = _flat(weights)
    state = [part.unsqueeze(0) for part in initial]
    return torch.lstm(u, state, flat, biased, 1, 0.0, False, False, False)[0]


_FUSED: dict[Cell, Callable[[Tensor, State, LayerWeights], Tensor]] = {
    cells.TANH: lambda u, s, w: _fused_simple(torch.rnn_tanh, u, s, w),
    cells.RELU: lambda u, s, w: _fused_simple(torch.rnn_relu, u, s, w),
    cells.GRU: lambda u, s, w: _fused_simple(torch.gru, u, s, w),
    cells.LSTM: _fused_lstm,
}
