"""The gradient of a gated network on its way back, in NumPy: what `diagnose` looks at.

As docs/theory-gated-cells.md has it, δ(n) = ∂E/∂a(n) is the gradient at the recurrent product
a(n) = U h(n−1), all gates in one vector. With g(n) = ∂E/∂h(n), for a GRU and an LSTM:

    n = tanh(x_n + r ∘ a_n):  δ_n = r ∘ p,  δ_r = a_n ∘ p ∘ r(1−r),  p = (1−z)(1−n²) ∘ g
                              δ_z = (h(n−1) − n) ∘ z(1−z) ∘ g         g(n−1) = z ∘ g + δ U
    c = f∘c' + i∘ĉ:  q = ∂E/∂c + o(1−tanh²c) ∘ g,  δ_i = ĉ ∘ i(1−i) ∘ q,  δ_f = c' ∘ f(1−f) ∘ q,
                     δ_ĉ = i(1−ĉ²) ∘ q,  δ_o = tanh c ∘ o(1−o) ∘ g;  ∂E/∂c' = f ∘ q,  g(n−1) = δ U
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradsieve.errors import InvalidArgument
from gradsieve.export import Portable, sigmoid
from gradsieve.network import Array

SMALL = -200  # the power of two below which a gradient is held in larger units


@dataclass(frozen=True)
class GatedFlow:
    """A minibatch gone through a gated network and back from its last step."""

    states: Array  # (T+1,B,H)
    scaled_deltas: Array  # (T,B,gates·H), in units of 2**exponents
    exponents: Array  # (T,)
    starts: Array  # (B,)
    t: Array  # targets of the last step
    loss: float  # summed over the minibatch

    @property
    def length(self) -> int:
        return len(self.scaled_deltas)


def gated_flow(network: Portable, u: Array, t: Array, starts: Array) -> GatedFlow:
    """Go forward and back: u (T,B,I) in the network's units, aligned at the end; t of the end."""
    if network.cell not in ("gru", "lstm") or len(network.layers) != 1:
        raise InvalidArgument(
            f"the network has {len(network.layers)} {network.cell} layers; a diagnosis is made of "
            "tanh networks of gradsieve, and of one layer of gru or lstm units"
        )
    layer, size = network.layers[0], network.hidden
    back_by = layer.w_hh.T.astype(np.float64)
    driven = u @ layer.w_ih.T.astype(np.float64) + layer.b
    active = (np.arange(len(u))[:, None] >= starts)[:, :, None]
    gated = network.cell == "lstm"
    states, cells = np.zeros((2, len(u) + 1, u.shape[1], size))
    seen: list[tuple[Array, ...]] = []
    gates: tuple[Array, ...]
    parts: tuple[Array, ...]
    for n, drive in enumerate(driven):
        a = states[n] @ back_by
        if gated:
            i, f, new, o = np.split(drive + a, 4, axis=1)
            gates = sigmoid(i), sigmoid(f), np.tanh(new), sigmoid(o)
            c = gates[1] * cells[n] + gates[0] * gates[2]
            cells[n + 1], h = c * active[n], gates[3] * np.tanh(c)
        else:
            r, z = np.split(sigmoid((drive + a)[:, : 2 * size]), 2, axis=1)
            candidate = a[:, 2 * size :] + layer.b_n
            gates = r, z, np.tanh(drive[:, 2 * size :] + r * candidate), candidate
            h = (1 - z) * gates[2] + z * states[n]
        states[n + 1] = h * active[n]
        seen.append(gates)
    g, loss = _error(network, states[-1], t)
    g_c = np.zeros_like(g)
    deltas = np.zeros((len(u), u.shape[1], len(layer.w_hh)))
    exponents = np.zeros(len(u), dtype=np.int64)
    unit = 0
    for n in range(len(u) - 1, -1, -1):
        if gated:
            i, f, new, o = seen[n]
            squashed = np.tanh(cells[n + 1])
            g_c = g_c + o * (1 - squashed**2) * g
            parts = (new * i * (1 - i) * g_c, cells[n] * f * (1 - f) * g_c,
                     i * (1 - new**2) * g_c, squashed * o * (1 - o) * g)  # fmt: skip
            held, g_c = np.zeros_like(g), f * g_c * active[n]
        else:
            r, z, new, candidate = seen[n]
            p = (1 - z) * (1 - new**2) * g
            parts = (candidate * p * r * (1 - r), (states[n] - new) * z * (1 - z) * g, r * p)
            held = z * g
        delta = np.concatenate(parts, axis=1) * active[n]
        deltas[n], exponents[n] = delta, unit
        g = (held + delta @ layer.w_hh) * active[n]
        power = math.frexp(max(float(np.abs(g).max()), float(np.abs(g_c).max())))[1]
        if power < SMALL or power > -SMALL:
            g, g_c, unit = np.ldexp(g, -power), np.ldexp(g_c, -power), unit + power
    return GatedFlow(states, deltas, exponents, starts, t, loss)


def _error(network: Portable, h: Array, t: Array) -> tuple[Array, float]:
    """∂E/∂h of the last step, and E: cross-entropy, or half the squared error, summed."""
    y = h @ network.w_out.T.astype(np.float64) + network.b_out
    if network.output == "softmax":
        powers = np.exp(y - y.max(axis=1, keepdims=True))
        p, rows = powers / powers.sum(axis=1, keepdims=True), np.arange(len(t))
        loss = -float(np.log(np.maximum(p[rows, t], np.finfo(float).tiny)).sum())
        p[rows, t] -= 1
        return p @ network.w_out, loss
    return (y - t) @ network.w_out, float(0.5 * ((y - t) ** 2).sum())
