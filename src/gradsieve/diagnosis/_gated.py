"""The gradient of a gated network on its way back, in NumPy: what `diagnose` looks at.

As in docs/theory-gated-cells.md, δ(n) = ∂E/∂a(n) is the gradient at the recurrent product
a(n) = U h(n−1) + b, all gates in one vector. `gradsieve.reference.cells` has the equations of each
cell, forward and back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradsieve.errors import InvalidArgument
from gradsieve.export import Portable
from gradsieve.network import Array
from gradsieve.reference.cells import CELLS, Back

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
            f"the network has {len(network.layers)} {network.cell} layers; diagnose takes "
            "tanh networks of gradsieve, and one layer of gru or lstm units"
        )
    layer, size = network.layers[0], network.hidden
    back_by, bias = layer.w_hh.T.astype(np.float64), layer.recurrent_bias
    driven = u @ layer.w_ih.T.astype(np.float64) + layer.b
    active = (np.arange(len(u))[:, None] >= starts)[:, :, None]
    states, cells = np.zeros((2, len(u) + 1, u.shape[1], size))
    backs: list[Back] = []
    for n, x in enumerate(driven):
        before = states[n], cells[n]
        (h, c), back = CELLS[network.cell](x, states[n] @ back_by + bias, before)
        states[n + 1], cells[n + 1] = h * active[n], c * active[n]
        backs.append(back)
    g, loss = _error(network, states[-1], t)
    g_c = np.zeros_like(g)
    deltas = np.zeros((len(u), u.shape[1], len(layer.w_hh)))
    exponents = np.zeros(len(u), dtype=np.int64)
    unit = 0
    for n in reversed(range(len(u))):
        _, delta, (held, g_c) = backs[n](g, g_c)
        delta, g_c = delta * active[n], g_c * active[n]
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
