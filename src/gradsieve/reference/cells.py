"""A recurrent layer forward and back, equation by equation: PyTorch's tanh, relu, GRU and LSTM.

With a(n) = W_ih u(n) + b_ih and v(n) = W_hh h(n−1) + b_hh, σ the logistic function:

    tanh, relu  h = f(a + v)
    gru   r, z = σ(a + v)   n = tanh(a + r∘v)   h = (1 − z)∘n + z∘h(n−1)
    lstm  i, f, o = σ(a + v)   g = tanh(a + v)   c = f∘c(n−1) + i∘g   h = o∘tanh c

The gates stand below each other in W_ih (G·H,I) and W_hh (G·H,H), in this order (i, f, g, o).
`forward` and `backward` are the oracle of the kernel's `recurrent_forward` and
`recurrent_backward`. An exported network and `diagnose` go through the same cells, step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradsieve.network import Array

State = tuple[Array, Array]  # h and c; c is zero where a cell has none
# Given ∂E/∂(h, c) of a step: ∂E/∂a, ∂E/∂v, and ∂E/∂(h, c) of the step before but for that by v.
Back = Callable[[Array, Array], tuple[Array, Array, State]]


def logistic(x: Array) -> Array:
    """1/(1 + e⁻ˣ), by tanh, which does not overflow."""
    half: Array = 0.5 + 0.5 * np.tanh(0.5 * x)
    return half


def tanh_cell(a: Array, v: Array, before: State) -> tuple[State, Back]:
    h = np.tanh(a + v)

    def back(dh: Array, dc: Array) -> tuple[Array, Array, State]:
        da = dh * (1 - h**2)
        return da, da, (np.zeros_like(dh), dc)

    return (h, before[1]), back


def relu_cell(a: Array, v: Array, before: State) -> tuple[State, Back]:
    h = np.maximum(a + v, 0)

    def back(dh: Array, dc: Array) -> tuple[Array, Array, State]:
        da = dh * (h > 0)
        return da, da, (np.zeros_like(dh), dc)

    return (h, before[1]), back


def gru_cell(a: Array, v: Array, before: State) -> tuple[State, Back]:
    h_before, c = before
    (a_r, a_z, a_n), (v_r, v_z, v_n) = np.split(a, 3, axis=1), np.split(v, 3, axis=1)
    r, z = logistic(a_r + v_r), logistic(a_z + v_z)
    n = np.tanh(a_n + r * v_n)

    def back(dh: Array, dc: Array) -> tuple[Array, Array, State]:
        da_n = (1 - z) * (1 - n**2) * dh
        da_r = v_n * da_n * r * (1 - r)
        da_z = (h_before - n) * z * (1 - z) * dh
        da = np.concatenate([da_r, da_z, da_n], axis=1)
        dv = np.concatenate([da_r, da_z, r * da_n], axis=1)
        return da, dv, (z * dh, dc)

    return ((1 - z) * n + z * h_before, c), back


def lstm_cell(a: Array, v: Array, before: State) -> tuple[State, Back]:
    c_before = before[1]
    i, f, g, o = np.split(a + v, 4, axis=1)
    i, f, g, o = logistic(i), logistic(f), np.tanh(g), logistic(o)
    c = f * c_before + i * g
    t = np.tanh(c)

    def back(dh: Array, dc: Array) -> tuple[Array, Array, State]:
        dc = dc + o * (1 - t**2) * dh
        gates = (
            g * i * (1 - i) * dc,
            c_before * f * (1 - f) * dc,
            i * (1 - g**2) * dc,
            t * o * (1 - o) * dh,
        )
        da = np.concatenate(gates, axis=1)
        return da, da, (np.zeros_like(dh), f * dc)

    return (o * t, c), back


CELLS = {"tanh": tanh_cell, "relu": relu_cell, "gru": gru_cell, "lstm": lstm_cell}


@dataclass(frozen=True)
class LayerPass:
    """One layer in one direction that has gone forward: all that `backward` reads."""

    u: Array  # (T,B,I)
    weights: dict[str, Array]
    counts: list[int]  # sequences at each step, never more than at the step before
    order: list[int]  # of the steps
    h: Array  # (T,B,H), zero where a sequence has ended
    h_before: Array
    last: State  # (B,H) each
    backs: dict[int, Back]


def forward(
    cell: str,
    u: Array,
    weights: dict[str, Array],
    initial: State,
    counts: list[int] | None = None,
    reverse: bool = False,
) -> LayerPass:
    """`weights` are weight_ih, weight_hh, bias_ih and bias_hh."""
    steps, batch, _ = u.shape
    counts = [batch] * steps if counts is None else counts
    order = list(reversed(range(steps))) if reverse else list(range(steps))
    h, c = (part.astype(np.float64) for part in initial)
    outputs, earlier = np.zeros((2, steps, *h.shape))
    backs: dict[int, Back] = {}
    for n in order:
        on = counts[n]
        earlier[n] = h
        a = u[n, :on] @ weights["weight_ih"].T + weights["bias_ih"]
        v = h[:on] @ weights["weight_hh"].T + weights["bias_hh"]
        (h_on, c_on), backs[n] = CELLS[cell](a, v, (h[:on], c[:on]))
        h, c = np.concatenate([h_on, h[on:]]), np.concatenate([c_on, c[on:]])
        outputs[n, :on] = h_on
    return LayerPass(u, weights, counts, order, outputs, earlier, (h, c), backs)


def backward(run: LayerPass, by_h: Array, by_last: State) -> dict[str, Array]:
    """∂E/∂ of u, the initial h0 and c0 and each of the weights, from ∂E/∂ of all h and the last."""
    dh, dc = (part.astype(np.float64) for part in by_last)
    found = {name: np.zeros(weight.shape) for name, weight in run.weights.items()}
    found["u"] = np.zeros(run.u.shape)
    for n in reversed(run.order):
        on = run.counts[n]
        da, dv, (dh_on, dc_on) = run.backs[n](dh[:on] + by_h[n, :on], dc[:on])
        dh = np.concatenate([dh_on + dv @ run.weights["weight_hh"], dh[on:]])
        dc = np.concatenate([dc_on, dc[on:]])
        found["u"][n, :on] = da @ run.weights["weight_ih"]
        found["weight_ih"] += da.T @ run.u[n, :on]
        found["weight_hh"] += dv.T @ run.h_before[n, :on]
        found["bias_ih"] += da.sum(0)
        found["bias_hh"] += dv.sum(0)
    return found | {"h0": dh, "c0": dc}
