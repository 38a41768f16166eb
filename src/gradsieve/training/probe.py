"""A look inside the network now and then: gradient over lag, activations, prediction against truth.

A probe never changes a run: it works on sequences and weights that it is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradsieve.change import norm_change, summarise
from gradsieve.flow import Flow, propagate
from gradsieve.network import SRN, Array
from gradsieve.training.data import Sequences
from gradsieve.training.settings import Settings
from gradsieve.training.step import Stepper

SATURATED = 0.9
SEQUENCES = 100


def log10_norms(flow: Flow) -> Array:
    """(T,): log10 of the mean ‖δ(n)‖ over the minibatch, for n = 1…T; −inf where it is zero."""
    norms = np.linalg.norm(flow.scaled_deltas.astype(np.float64), axis=2).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log10(norms) + flow.exponents * math.log10(2))


def lags(length: int, most: int = 48) -> Array:
    """Lags 0 … length−1, evenly spread, at most so many."""
    return np.unique(np.linspace(0, length - 1, min(most, length)).round().astype(int))


@dataclass(frozen=True)
class Look:
    """What one probe saw; see `look`."""

    lags: list[int]
    log10_norm: list[float | None]
    activation_mean: float
    activation_median: float
    saturated: float
    predicted: float | None
    measured: float | None

    def as_dict(self) -> dict[str, Any]:
        return self.__dict__.copy()


def look(stepper: Stepper, validation: Sequences, settings: Settings) -> Look:
    """Look at the network as it is, and at what its last update was predicted to do and did."""
    net = stepper.net
    batch = validation.batch(slice(0, SEQUENCES))
    flow = propagate(net, *batch, settings.engine).of_last_step()
    norms = log10_norms(flow)
    chosen = lags(flow.length)
    size = np.abs(np.asarray(flow.states[1:], dtype=np.float64))
    predicted, measured = _prediction(net, stepper, settings)
    return Look(
        lags=[int(lag) for lag in chosen],
        log10_norm=[_finite(float(norms[-1 - lag])) for lag in chosen],
        activation_mean=float(size.mean()),
        activation_median=float(np.median(size)),
        saturated=float((size > SATURATED).mean()),
        predicted=predicted,
        measured=measured,
    )


def _prediction(
    net: SRN, stepper: Stepper, settings: Settings
) -> tuple[float | None, float | None]:
    """Predicted and measured change of ln‖δ(T−h)‖ by the last update that was kept."""
    if stepper.applied is None or stepper.flow is None or stepper.flow.length < 2:
        return None, None
    batch = stepper.flow.u, stepper.flow.t, stepper.flow.starts
    before_net = net.replaced(net.flat - stepper.applied)
    before = propagate(before_net, *batch, settings.engine).of_last_step()
    after = propagate(net, *batch, settings.engine).of_last_step()
    horizon = (settings.sieve.horizon if settings.sieve else None) or before.length - 1
    estimator = settings.sieve.estimator if settings.sieve else "full"
    change = norm_change(before, before_net.like(stepper.applied), horizon, estimator)
    return _finite(change.relative), _finite(log_far_growth(before, after, horizon))


def log_far_growth(before: Flow, after: Flow, horizon: int) -> float:
    """How much ln‖δ(T−h)‖ (the root of S) really grew from one flow to the other."""
    old, new = (flow.norms(None, horizon, "full") for flow in (before, after))
    if summarise(old).Q in (math.inf, math.nan) or not (old.far_square > 0 < new.far_square):
        return math.nan
    shift = (new.far_exponent - old.far_exponent) * math.log(2)
    return 0.5 * math.log(new.far_square / old.far_square) + shift


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
