"""A look inside the network now and then: gradient over lag, activations, prediction against truth.

A probe never changes a run: it works on sequences and weights that it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradsieve.change import norm_change, slow_factor
from gradsieve.flow import Flow, propagate
from gradsieve.network import Array
from gradsieve.training.corrections import finite
from gradsieve.training.data import Stacked
from gradsieve.training.step import Stepper

SATURATED = 0.9
SEQUENCES = 100


def log10_norms(flow: Flow) -> Array:
    """(T,): log10 of the mean ‖δ(n)‖ over the minibatch, for n = 1…T; −inf where it is zero."""
    norms = np.linalg.norm(flow.scaled_deltas.astype(np.float64), axis=2).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log10(norms) + flow.exponents * math.log10(2))


def lags(length: int, most: int = 48) -> Array:
    """At most `most` lags, spread evenly over 0 … length−1."""
    return np.unique(np.linspace(0, length - 1, min(most, length)).round().astype(int))


@dataclass(frozen=True)
class Probe:
    """The result of `probe`."""

    lags: list[int]
    log10_norm: list[float | None]
    slow_Q: list[float | None]  # over each lag as the horizon
    activation_mean: float
    activation_median: float
    saturated: float
    predicted: float | None
    measured: float | None


def probe(stepper: Stepper, validation: Stacked) -> Probe:
    """Look at the network as it is, and at the predicted and the real effect of its last update."""
    batch = validation.batch(slice(0, SEQUENCES))
    flow = propagate(stepper.net, *batch, stepper.engine).of_last_step()
    norms = log10_norms(flow)
    chosen = lags(flow.length)
    size = np.abs(np.asarray(flow.states[1:], dtype=np.float64))
    predicted, measured = _prediction(stepper)
    return Probe(
        lags=[int(lag) for lag in chosen],
        log10_norm=[finite(float(norms[-1 - lag])) for lag in chosen],
        slow_Q=[finite(slow_factor(flow, int(lag))) if lag else 0.0 for lag in chosen],
        activation_mean=float(size.mean()),
        activation_median=float(np.median(size)),
        saturated=float((size > SATURATED).mean()),
        predicted=predicted,
        measured=measured,
    )


def _prediction(stepper: Stepper) -> tuple[float | None, float | None]:
    """Predicted and measured change of ln‖δ(T−h)‖ by the last update that was made."""
    applied, flow = stepper.descent.applied, stepper.flow
    if applied is None or flow is None or flow.length < 2:
        return None, None
    net = stepper.net.replaced(stepper.net.flat - applied)
    before = propagate(net, flow.u, flow.t, flow.starts, stepper.engine).of_last_step()
    horizon = None if stepper.policy is None else stepper.policy.sieve.horizon
    changes = (
        norm_change(before, net.like(applied), horizon, estimator)
        for estimator in ("full", "measured")
    )
    predicted, measured = (finite(change.relative) for change in changes)
    return predicted, measured
