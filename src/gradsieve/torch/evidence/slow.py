"""The slow gradient of each example, and the Q that the policy "hold" steers by.

The far deltas of an example whose last step is `last` and whose horizon is h are averaged over time
(docs/theory.md, "The slow gradient"):

    s = Σ w(n) δ(n),   n = last−h … last−h+W−1,   W = `window` of the h+1 steps
    slow Q = mean over the examples of log10(‖δ(last)‖ / ‖s‖)

Each example has its own last step, horizon and window. One whose near or slow gradient is zero does
not count. Everything is measured from the scaled deltas that a transport has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from gradsieve.change import window_steps
from gradsieve.network import Array
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.ends import ends
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.evidence.recursion import Deltas

NONE = -(2**40)  # the exponent of zero


@dataclass(frozen=True)
class SlowSum:
    """What slow Q is made of; sums over calls, directions and processes are sums of these."""

    logs: float = 0.0  # Σ log10(‖δ(last)‖ / ‖s‖) over the examples that count
    count: int = 0
    near: int = 0  # how many examples have a near gradient at all

    @property
    def Q(self) -> float:
        """As for the core: infinite where of every near gradient nothing slow is left."""
        if self.count == 0:
            return math.inf if self.near else math.nan
        return self.logs / self.count

    def __add__(self, other: SlowSum) -> SlowSum:
        return SlowSum(self.logs + other.logs, self.count + other.count, self.near + other.near)

    def over_processes(self) -> SlowSum:
        """The sum over all processes of torch.distributed."""
        total = torch.tensor([self.logs, self.count, self.near], dtype=torch.float64)
        logs, count, near = over_processes(total).tolist()
        return SlowSum(logs, int(count), int(near))


def slow_sum(carrier: Carrier, deltas: list[Deltas], horizon: int | None, window: float) -> SlowSum:
    """Of one carrier and its layers' deltas; all layers of an example are one long δ."""
    found = ends(carrier, deltas, None, horizon)
    near = _log_norms(found.near_square, found.near_exponent)
    slow = _slow_logs(carrier, deltas, horizon, window)
    counts = (near != -np.inf) & (slow != -np.inf)
    # A delta that is not finite makes Q unknown, as it does for Eq. 14.
    with np.errstate(invalid="ignore"):  # zero over zero, of examples that do not count
        ratios = np.where(np.isfinite(near) & np.isfinite(slow), near - slow, np.nan)[counts]
    return SlowSum(float(ratios.sum()), int(counts.sum()), int((near != -np.inf).sum()))


def window_weights(carrier: Carrier, horizon: int | None, window: float) -> Array:
    """(T,B): w(n) of each example, a Hann window; zero outside it and for too short examples."""
    far, usable = (values.cpu().numpy() for values in carrier.far_steps(horizon))
    spans = carrier.last.cpu().numpy() - far
    steps = np.array([window_steps(span, window) for span in spans.clip(min=0).tolist()])
    lag = np.arange(carrier.steps)[:, None] - far
    inside = usable & (lag >= 0) & (lag < steps)
    weights = np.where(inside, np.sin(np.pi * (lag + 0.5) / steps) ** 2, 0.0)
    total = weights.sum(0)
    normed: Array = np.divide(weights, total, out=weights, where=total > 0)
    return normed


def _slow_logs(carrier: Carrier, deltas: list[Deltas], horizon: int | None, window: float) -> Array:
    """(N,): log10 ‖s‖ of every example that is long enough."""
    weights = window_weights(carrier, horizon, window)
    squares, exponents = [], []
    for layer in deltas:
        slow, units = layer.average(weights)
        squares.append(np.square(slow, dtype=np.float64).sum(1))
        exponents.append(units)
    usable = carrier.far_steps(horizon)[1].cpu().numpy()
    logs: Array = _log_norms(np.array(squares), np.array(exponents))[usable]
    return logs


def _log_norms(squares: Array, exponents: Array) -> Array:
    """(N,): log10 of the norms of layers' parts, (layers,N), side by side; −inf for zero."""
    exponents = exponents.astype(np.int64)  # NONE is none of int32
    highest = np.where(squares != 0, exponents, NONE).max(0)
    shift = np.clip(2 * (exponents - highest), -2000, 2000)
    total = np.ldexp(squares, shift).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Array = 0.5 * np.log10(total) + highest * math.log10(2)
    return logs
