"""Independent truth for the core's arithmetic: PyTorch's autograd, and decimals of 50 digits.

Neither shares a line, or a formula for a derivative, with the engines: autograd differentiates the
forward pass (twice, where the derivative of a delta is wanted), and the decimals hold any exponent,
so that they need no scaling where a float would underflow.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

import numpy as np
import pytest
import torch

import gradsieve as gs
from gradsieve.network import FIELDS

every_engine = pytest.mark.parametrize("engine", ["reference", "native"])
DIGITS = Context(prec=50, Emin=-999_999_999, Emax=999_999_999)


def random_problem(
    seed, steps, batch, inputs, hidden, outputs, output, per_step=False, gain=1.0, unequal=False
):
    """A float64 network whose biases are not zero, with a minibatch: net, u, t, starts."""
    rng = np.random.default_rng(seed)
    net = gs.SRN(
        w_in=rng.normal(size=(inputs, hidden)),
        w_rec=rng.normal(size=(hidden, hidden)) * gain / np.sqrt(hidden),
        b=rng.normal(size=hidden) * 0.3,
        w_out=rng.normal(size=(hidden, outputs)),
        b_out=rng.normal(size=outputs) * 0.3,
        output=output,
    )
    u = rng.normal(size=(steps, batch, inputs))
    lead = (steps, batch) if per_step else (batch,)
    t = rng.integers(0, outputs, lead) if output == "softmax" else rng.normal(size=(*lead, outputs))
    starts = rng.integers(0, steps, batch) if unequal else None
    return net, u, t, starts


def random_update(net, seed, size=1.0):
    return net.like(np.random.default_rng(seed).normal(size=net.flat.size) * size)


class Autograd:
    """The same network in torch; `loss`, `deltas` (T,B,H) and Q, S keep their graph."""

    def __init__(self, net, u, t, starts=None):
        self.weights = {
            name: torch.tensor(value, dtype=torch.float64, requires_grad=True)
            for name, value in net.fields().items()
        }
        w, u = self.weights, torch.tensor(np.asarray(u, dtype=np.float64))
        steps, batch, _ = u.shape
        starts = np.zeros(batch, dtype=int) if starts is None else starts
        state = torch.zeros(batch, net.hidden, dtype=torch.float64)
        activations, states, masks = [], [], []
        for n in range(1, steps + 1):
            mask = torch.tensor(n > starts, dtype=torch.float64)
            activations.append(u[n - 1] @ w["w_in"] + state @ w["w_rec"] + w["b"])
            state = torch.tanh(activations[-1]) * mask[:, None]
            states.append(state)
            masks.append(mask)
        target = torch.tensor(t)
        if target.ndim == (2 if net.output == "softmax" else 3):
            losses = sum(
                (self._losses(net, z, target[n]) * masks[n]).sum() for n, z in enumerate(states)
            )
        else:
            losses = self._losses(net, states[-1], target).sum()
        self.loss = losses
        self.deltas = torch.stack(
            torch.autograd.grad(
                losses, activations, create_graph=True, allow_unused=True, materialize_grads=True
            )
        )

    def _losses(self, net, state, target):
        y = state @ self.weights["w_out"] + self.weights["b_out"]
        if net.output == "softmax":
            return torch.nn.functional.cross_entropy(y, target, reduction="none")
        return 0.5 * ((y - target) ** 2).sum(dim=1)

    def S(self, horizon):
        return 0.5 * (self.deltas[-1 - horizon] ** 2).sum()

    def Q(self, horizon):
        norms = torch.linalg.vector_norm(self.deltas, dim=2).mean(dim=1)
        return torch.log10(norms[-1] / norms[-1 - horizon])

    def slow_Q(self, horizon, steps):
        """Written for an example at a time; those that have no delta in the window are left out."""
        first = self.deltas.shape[0] - 1 - horizon
        hann = torch.sin(torch.pi * (torch.arange(steps, dtype=torch.float64) + 0.5) / steps) ** 2
        found = []
        for example in range(self.deltas.shape[1]):
            far = self.deltas[first : first + steps, example]
            slow = (hann[:, None] * far).sum(dim=0) / hann.sum()
            near = self.deltas[-1, example]
            if slow.any() and near.any():
                found.append(torch.log10(near.norm() / slow.norm()))
        return sum(found) / len(found)

    def gradient_of(self, value):
        """Its derivative by every weight, in the order of `Weights.flat`."""
        slopes = torch.autograd.grad(
            value,
            [self.weights[name] for name in FIELDS],
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        return np.concatenate([slope.detach().numpy().ravel() for slope in slopes])


def decimal_flow(net, u, t, update=None, step=0):
    """delta(1)…delta(T), each B lists of H decimals, of the network at net + step·update."""
    with localcontext(DIGITS):
        weights = {}
        for name, value in net.fields().items():
            moved = [Decimal(float(x)) for x in value.ravel()]
            if update is not None:
                change = getattr(update, name).ravel()
                moved = [x + step * Decimal(float(dx)) for x, dx in zip(moved, change, strict=True)]
            weights[name] = np.array(moved, dtype=object).reshape(value.shape)
        drive = _decimals(u) @ weights["w_in"] + weights["b"]
        state = np.full((u.shape[1], net.hidden), Decimal(0), dtype=object)
        slopes = []
        for row in drive:
            a = row + state @ weights["w_rec"]
            decay = np.vectorize(lambda x: (-2 * abs(x)).exp(), otypes=[object])(a)
            sign = np.vectorize(lambda x: Decimal(1 if x >= 0 else -1), otypes=[object])(a)
            state = sign * (1 - decay) / (1 + decay)
            slopes.append(4 * decay / (1 + decay) ** 2)
        y = state @ weights["w_out"] + weights["b_out"]
        if net.output == "softmax":
            power = np.vectorize(lambda x: x.exp(), otypes=[object])(y)
            p = power / power.sum(axis=1)[:, None]
            error = p - _decimals(np.eye(net.outputs)[t])
        else:
            error = y - _decimals(t)
        deltas = [(error @ weights["w_out"].T) * slopes[-1]]
        for slope in reversed(slopes[:-1]):
            deltas.append((deltas[-1] @ weights["w_rec"].T) * slope)
        return deltas[::-1]


def decimal_norms(deltas, horizon):
    """S and Q, as decimals."""
    with localcontext(DIGITS):
        squares = [(deltas[index] ** 2).sum(axis=1) for index in (-1, -1 - horizon)]
        near, far = (sum(square.sqrt() for square in row) for row in squares)
        return sum(squares[1]) / 2, (near / far).log10()


def decimal_change(net, u, t, update, horizon):
    """S, Q, dS/(2S), the sign of dS, and dQ along the update, by central differences."""
    with localcontext(DIGITS):
        step = Decimal(10) ** -15
        above = decimal_norms(decimal_flow(net, u, t, update, step), horizon)
        below = decimal_norms(decimal_flow(net, u, t, update, -step), horizon)
        S, Q = decimal_norms(decimal_flow(net, u, t), horizon)
        dS, dQ = ((high - low) / (2 * step) for high, low in zip(above, below, strict=True))
        return S, float(Q), float(dS / (2 * S)), int(dS.compare(0)), float(dQ)


def _decimals(values):
    return np.vectorize(lambda x: Decimal(float(x)), otypes=[object])(np.asarray(values))
