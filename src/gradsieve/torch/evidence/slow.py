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
from dataclasses import astuple, dataclass
from functools import lru_cache

import numpy as np
import torch

from gradsieve.change import window_steps
from gradsieve.network import Array
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.evidence.recursion import Deltas

NONE = -(2**40)  # the exponent of zero


@dataclass(frozen=True)
class SlowSum:
    """What slow Q is made of; sums over calls, directions and processes are sums of these."""

    logs: float = 0.0  # Σ log10(‖δ(last)‖ / ‖s‖) over the examples that count
    count: int = 0
    near: int = 0  # how many examples have a near gradient at all
    examples: int = 0  # how many are long enough

    @property
    def Q(self) -> float:
        """As for the core: infinite where of every near gradient nothing slow is left."""
        if self.count == 0:
            return math.inf if self.near else math.nan
        return self.logs / self.count

    def __add__(self, other: SlowSum) -> SlowSum:
        return SlowSum(
            self.logs + other.logs,
            self.count + other.count,
            self.near + other.near,
            self.examples + other.examples,
        )

    def over_processes(self) -> SlowSum:
        """The sum over all processes of torch.distributed."""
        total = torch.tensor(astuple(self), dtype=torch.float64)
        logs, *counts = over_processes(total).tolist()
        return SlowSum(logs, *map(int, counts))


def slow_sum(carrier: Carrier, deltas: list[Deltas], horizon: int | None, window: float) -> SlowSum:
    """Of one carrier and its layers' deltas; all layers of an example are one long δ."""
    last = carrier.last_steps
    weights, usable = _window(carrier.steps, last.tobytes(), horizon, window)
    ends = [layer.slow_ends(weights, last) for layer in deltas]
    if len(ends) == 1 and len(usable) == len(last):
        ratios = _log_ratios(ends[0])
        if ratios is not None:
            return SlowSum(float(ratios.sum()), *(len(last),) * 3)
    found = np.array(ends)[:, :, usable]
    near, slow = _log_norms(found[:, 0], found[:, 1]), _log_norms(found[:, 2], found[:, 3])
    some = near != -np.inf
    counts = some & (slow != -np.inf)
    # A delta that is not finite makes Q unknown, as it does for Eq. 14.
    with np.errstate(invalid="ignore"):
        ratios = near[counts] - slow[counts]
    total = float(ratios.sum()) if np.isfinite(ratios).all() else math.nan
    return SlowSum(total, int(counts.sum()), int(some.sum()), len(usable))


def _log_ratios(ends: Array) -> Array | None:
    """log10(‖δ(last)‖ / ‖s‖), the ordinary case in few steps; None if one is zero or infinite."""
    squares, units = ends[::2], ends[1::2]
    if not (squares.min() > 0 and squares.max() < math.inf):
        return None
    logs = np.log10(squares)
    ratios: Array = 0.5 * (logs[0] - logs[1]) + (units[0] - units[1]) * math.log10(2)
    return ratios


def window_weights(carrier: Carrier, horizon: int | None, window: float) -> Array:
    """(T,B): w(n) of each example, a Hann window; zero outside it and for too short examples."""
    return _window(carrier.steps, carrier.last_steps.tobytes(), horizon, window)[0]


@lru_cache(maxsize=4)
def _window(
    steps: int, last_steps: bytes, horizon: int | None, window: float
) -> tuple[Array, Array]:
    """The weights, and the index of the examples that are long enough.

    Most minibatches of a training have the same last steps.
    """
    last = np.frombuffer(last_steps, np.int64)
    far = np.zeros_like(last) if horizon is None else last - horizon
    usable = last >= 1 if horizon is None else far >= 0
    far = far.clip(min=0)
    spans = (last - far).clip(min=0)
    widths = np.array([window_steps(span, window) for span in spans.tolist()], np.int64)
    lag = np.arange(steps)[:, None] - far
    inside = usable & (lag >= 0) & (lag < widths)
    weights = np.where(inside, np.sin(np.pi * (lag + 0.5) / widths) ** 2, 0.0)
    total = weights.sum(0)
    normed: Array = np.divide(weights, total, out=weights, where=total > 0)
    normed.flags.writeable = False
    return normed, np.flatnonzero(usable)


def _log_norms(squares: Array, exponents: Array) -> Array:
    """(N,): log10 of the norms of layers' parts, (layers,N), side by side; −inf for zero."""
    exponents = exponents.astype(np.int64)  # NONE is none of int32
    highest = np.where(squares != 0, exponents, NONE).max(0)
    if len(squares) == 1:
        total = squares[0]
    else:
        shift = np.clip(2 * (exponents - highest), -2000, 2000).astype(np.int64)
        total = np.ldexp(squares, shift).sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Array = 0.5 * np.log10(total) + highest * math.log10(2)
    return logs
