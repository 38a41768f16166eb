"""Forward through a stack of recurrent layers again, keeping what the deltas need.

The fused kernels of PyTorch keep their gates to themselves, so the states are computed a second
time: the outputs h by the fused kernel (without a graph), and then, all steps at once, the
products x and a that belong to them, where they are asked for. Nothing here builds a graph.

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

from gradsieve.torch import kernel_bridge
from gradsieve.torch.kernel_bridge import LSTMUnits
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import Cell, State
from gradsieve.torch.modules.stack import LayerWeights


@dataclass(frozen=True)
class LayerRun:
    """One layer in one direction, in its own time; all of it (T,B,…)."""

    cell: Cell
    weights: LayerWeights
    u: Tensor
    before: State  # s(0) … s(T−1)
    after: State  # s(1) … s(T)
    memory: Memory
    products: tuple[Tensor, Tensor] | None = None  # x and a, where they are known already
    units: LSTMUnits | None = None  # of an LSTM on the CPU

    @cached_property
    def x(self) -> Tensor:
        if self.products is not None:
            return self.products[0]
        return cells.drive(self.u, self.weights, len(self.cell.gates))

    @cached_property
    def a(self) -> Tensor:
        if self.products is not None:
            return self.products[1]
        return cells.recur(self.before[0], self.weights, len(self.cell.gates))


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
    cell: Cell,
    weights: LayerWeights,
    u: Tensor,
    initial: State,
    h: Tensor | None = None,
    memory: Memory | None = None,
) -> LayerRun:
    """Run one layer over u; `h` are its outputs where they are known already."""
    memory = memory or Memory()
    if h is None and cell in _FUSED:
        h = _FUSED[cell](u, initial, weights)
    if h is not None and cell is cells.LSTM and kernel_bridge.serves(h):
        return _run_lstm(weights, u, initial, h, memory)
    if h is None or (cell.states > 1 and cell is not cells.LSTM):
        return _run_by_steps(cell, weights, u, initial, memory)
    h_before = torch.cat([initial[0].unsqueeze(0), h[:-1]])
    if cell is not cells.LSTM:
        return LayerRun(cell, weights, u, (h_before,), (h,), memory)
    x, a = cells.drive(u, weights, 4), cells.recur(h_before, weights, 4)
    c = _lstm_memory(x, a, initial[1])
    return LayerRun(cell, weights, u, (h_before, c[:-1]), (h, c[1:]), memory, (x, a))


def _run_lstm(
    weights: LayerWeights, u: Tensor, initial: State, h: Tensor, memory: Memory
) -> LayerRun:
    """An LSTM on the CPU: it reads x and a as their sum, so x holds both and a is zero."""
    h_before = torch.cat([initial[0].unsqueeze(0), h[:-1]])
    both = sum_of_products(u, h_before, weights, 4, memory)
    units = LSTMUnits(both, initial[1], memory)
    zero = both.new_zeros(()).expand_as(both)
    before, after = (h_before, units.c[:-1]), (h, units.c[1:])
    return LayerRun(cells.LSTM, weights, u, before, after, memory, (both, zero), units)


def _run_by_steps(
    cell: Cell, weights: LayerWeights, u: Tensor, initial: State, memory: Memory
) -> LayerRun:
    gates, extra = len(cell.gates), cells.beyond_linear(weights)
    x = cells.drive(u, weights, gates)
    state, states, products = initial, [initial], []
    for x_now in x.unbind(0):
        products.append(cells.recur(state[0], weights, gates))
        state = cell.update(x_now, products[-1], state, extra)
        states.append(state)
    parts = [torch.stack(part) for part in zip(*states, strict=True)]
    before, after = tuple(p[:-1] for p in parts), tuple(p[1:] for p in parts)
    return LayerRun(cell, weights, u, before, after, memory, (x, torch.stack(products)))


def _lstm_memory(x: Tensor, a: Tensor, c: Tensor) -> Tensor:
    """c(0) … c(T), when every h is known: only c's own recursion is left."""
    input, forget, cell, _ = (x + a).unbind(-2)
    memory = x.new_empty((x.shape[0] + 1, *c.shape))
    memory[0] = c
    written = torch.sigmoid(input) * torch.tanh(cell)
    kept = torch.sigmoid(forget)
    rows = memory.unbind(0)
    for n, (gain, factor) in enumerate(zip(written.unbind(0), kept.unbind(0), strict=True)):
        torch.addcmul(gain, factor, rows[n], out=rows[n + 1])
    return memory


def sum_of_products(
    inputs: Tensor, h: Tensor, weights: LayerWeights, gates: int, memory: Memory
) -> Tensor:
    """x + a, (T,B,G,H), in one array."""
    rows = weights["weight_hh"].shape[0]
    total = memory.empty((*h.shape[:2], gates, rows // gates), like=h)
    biases = [weights[name] for name in ("bias_ih", "bias_hh") if name in weights]
    bias = torch.stack(biases).sum(0) if biases else None
    left = [h.reshape(-1, h.shape[-1]), inputs.reshape(-1, inputs.shape[-1])]
    add_up(total.view(-1, rows), left, [weights["weight_hh"], weights["weight_ih"]], bias)
    return total


def add_up(out: Tensor, left: list[Tensor], right: list[Tensor], bias: Tensor | None) -> None:
    """out = bias + Σ A Wᵀ; out is (N,M), each A (N,·), each W (M,·)."""
    if kernel_bridge.serves(out):
        kernel_bridge.add_up(out, left, right, bias)
        return
    out.zero_() if bias is None else out.copy_(bias.expand_as(out))
    for one, weight in zip(left, right, strict=True):
        out.addmm_(one, weight.T)


def multiply(out: Tensor, left: Tensor, right: Tensor) -> None:
    """out = A W."""
    if kernel_bridge.serves(out):
        kernel_bridge.multiply(out, left, right)
    else:
        torch.mm(left, right, out=out)


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
