"""The effect of an update on the far gradient: S, dS, Q and dQ, before the update is made.

S = ½ Σ ‖δ(T−h)‖² (Eq. 4) and Q = log10(mean ‖δ(T)‖ / mean ‖δ(T−h)‖) (Eq. 14) come from a flow;
dS and dQ are their derivatives along an update, or their differences. Three estimators:

- `frozen` is the paper's Lemma 1: D(n) = f′(a(n)) is held fixed, only w_rec moves;
- `full` holds nothing fixed: the update also moves the states, the slopes and the error;
- `measured` makes the update, goes forward and backward again, and takes the difference: exact for
  steps of any size.

The slow gradient is our own measure beside them, for the policy "hold".

This module turns an engine's scaled sums (`flow.Norms`) into numbers; it does no array arithmetic
of its own but the last product in `example_contributions`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gradsieve.errors import InvalidArgument, one_of
from gradsieve.flow import Derivative, Flow, Measure, Norms, checked_horizon, propagate
from gradsieve.network import Array, Weights

Estimator = Literal["full", "frozen", "measured"]
ESTIMATORS = get_args(Estimator)

SMALLEST = math.ulp(0.0)
LARGEST_LOG = 700.0  # of which a float still has the exponential
WINDOW = 0.7  # share of the horizon that the slow gradient averages


@dataclass(frozen=True, slots=True)
class NormChange:
    """The far gradient of one minibatch and its predicted change by one update."""

    S: float  # ½ Σ ‖δ(T−h)‖²
    dS: float  # its change; never rounds to zero while its sign is known
    relative: float  # dS / (2S): the relative change of the norm, however small S is
    Q: float  # log10 of near over far: positive is vanished, negative exploded
    dQ: float  # its change


def norm_change(
    flow: Flow, update: Weights, horizon: int | None = None, estimator: Estimator = "full"
) -> NormChange:
    """Predict the effect of `update` on the far gradient of this minibatch.

    Args:
        flow: the minibatch, gone forward and backward.
        update: the change of the weights, all five fields (`frozen` looks at w_rec only).
        horizon: h, how many steps before the end "far" is; T−1 by default.
        estimator: "full", "frozen" for the paper's Lemma 1, or "measured".
    """
    if update.flat.shape != flow.net.flat.shape or update.w_in.shape != flow.net.w_in.shape:
        raise InvalidArgument(f"update is {update!r}; it must fit the network, {flow.net!r}")
    flow = flow.of_last_step()
    horizon = checked_horizon(flow.length, horizon)
    if one_of("estimator", estimator, ESTIMATORS) == "measured":
        return _measured(flow, update, horizon)
    return summarise(flow.norms(update, horizon, estimator))  # type: ignore[arg-type]


def _measured(flow: Flow, update: Weights, horizon: int) -> NormChange:
    """The change that the update really makes."""
    moved = flow.net.replaced((flow.net.flat + update.flat).astype(flow.net.dtype, copy=False))
    after = propagate(moved, flow.u, flow.t, flow.starts, flow.engine)
    return difference(*(one.norms(None, horizon, "full") for one in (flow, after)))


def difference(old: Norms, new: Norms) -> NormChange:
    """The change from one measurement to another; `relative` is that of ln‖δ(T−h)‖."""
    was, now = summarise(old), summarise(new)
    if not (old.far_square > 0 < new.far_square and math.isfinite(was.Q + now.Q)):
        return NormChange(was.S, math.nan, math.nan, was.Q, math.nan)
    units = (new.far_exponent - old.far_exponent) * math.log(2)
    growth = 0.5 * math.log(new.far_square / old.far_square) + units
    difference = old.far_square * math.expm1(min(2 * growth, LARGEST_LOG)) / 2
    return NormChange(
        was.S, _unscaled(difference, 2 * old.far_exponent), growth, was.Q, now.Q - was.Q
    )


def q_factor(flow: Flow, horizon: int | None = None) -> float:
    """Q alone (Eq. 14), which costs next to nothing."""
    flow = flow.of_last_step()
    return summarise(flow.norms(None, checked_horizon(flow.length, horizon), "full")).Q


def norm_gradient(flow: Flow, horizon: int | None = None, of: Measure = "Q") -> Weights:
    """The full derivative of Q, or of S, by every weight of the network."""
    one_of("of", of, ("Q", "S"))
    flow = flow.of_last_step()
    horizon = checked_horizon(flow.length, horizon)
    gradient = flow.norm_gradient(horizon, of, "full")
    if of == "S":
        gradient.flat[:] = np.ldexp(gradient.flat, 2 * _far_exponent(flow, horizon))
    return gradient


def slow_factor(flow: Flow, horizon: int | None = None, window: float = WINDOW) -> float:
    """Q of the slow gradient, the part of each example's far deltas that keeps its direction.

    A gradient is a sum over the steps. Deltas that keep their direction from step to step add up in
    it; deltas that turn cancel, however large they are. So the far deltas of each example are
    averaged, s = Σ w(n) δ(n), over the first `window` of the horizon, with the weights of Hann, and

        slow Q = mean over the examples of log10(‖δ(T)‖ / ‖s‖).

    The mean is of logarithms, so that each example counts alike: of Eq. 14's mean ‖δ(T−h)‖ a few
    examples may hold nearly all. See docs/theory.md.
    """
    flow = flow.of_last_step()
    horizon = checked_horizon(flow.length, horizon)
    return flow.slow_factor(horizon, window_steps(horizon, window))


def slow_gradient(flow: Flow, horizon: int | None = None, window: float = WINDOW) -> Weights:
    """The full derivative of `slow_factor` by every weight of the network."""
    flow = flow.of_last_step()
    horizon = checked_horizon(flow.length, horizon)
    return flow.slow_gradient(horizon, window_steps(horizon, window))


def window_steps(horizon: int, window: float) -> int:
    """How many of the steps T−h … T the slow gradient averages."""
    if not 0 < window <= 1:
        raise InvalidArgument(f"window is {window}; it must lie above 0 and at most at 1")
    return max(1, int(window * (horizon + 1)))


def example_contributions(
    flow: Flow,
    learning_rate: float,
    horizon: int | None = None,
    estimator: Estimator = "full",
) -> Array:
    """(B,): the share of each example in the dS of the plain update −α Σ gᵢ.

    Contribution i is ⟨∂S/∂w, −α gᵢ⟩: the dS of the update by that example alone.
    """
    last = flow.of_last_step()
    horizon = checked_horizon(last.length, horizon)
    one_of("estimator", estimator, ESTIMATORS)
    derivative: Derivative = "frozen" if estimator == "frozen" else "full"
    direction = last.norm_gradient(horizon, "S", derivative)
    scaled = -learning_rate * flow.example_products(direction)
    exponent = 2 * _far_exponent(last, horizon)
    true = np.ldexp(scaled, exponent)
    return np.where((true == 0) & (scaled != 0), np.copysign(SMALLEST, scaled), true)


def summarise(norms: Norms) -> NormChange:
    """S, dS, dS/(2S), Q and dQ from an engine's scaled sums."""
    near, far, square = norms.near_norm, norms.far_norm, norms.far_square
    if not math.isfinite(near + far + square + norms.far_product):
        return NormChange(math.nan, math.nan, math.nan, math.nan, math.nan)
    exponent = 2 * norms.far_exponent
    S = _unscaled(0.5 * square, exponent)
    dS = _unscaled(norms.far_product, exponent)
    if far == 0 or near == 0:
        Q = math.inf if near > 0 else math.nan
        return NormChange(S, dS, math.nan, Q, math.nan)
    Q = math.log10(near / far) + (norms.near_exponent - norms.far_exponent) * math.log10(2)
    dQ = (norms.near_slope / near - norms.far_slope / far) / math.log(10)
    return NormChange(S, dS, norms.far_product / square, Q, dQ)


def _far_exponent(flow: Flow, horizon: int) -> int:
    return int(flow.exponents[flow.length - horizon - 1])


def _unscaled(value: float, exponent: int) -> float:
    """value · 2**exponent; underflow stops at the smallest number so that the sign survives."""
    try:
        result = math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)
    return math.copysign(SMALLEST, value) if result == 0 and value != 0 else result
