"""One minibatch: propose an update, judge it, keep it or skip it (Algorithm 1, as corrected).

The proposal is the whole change that would be made, momentum and clipping included, because that
is what moves the far gradient. dS is predicted only where the verdict depends on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gradsieve import kernel
from gradsieve.change import (
    NormChange,
    example_contributions,
    norm_change,
    norm_gradient,
    slow_factor,
    slow_gradient,
    summarise,
)
from gradsieve.flow import Flow, checked_horizon, propagate
from gradsieve.network import SRN, Array
from gradsieve.sieve import (
    EXPLODED_FALLS,
    IN_RANGE,
    NOT_FINITE,
    STALL_BROKEN,
    TOO_LARGE,
    VANISHED_GROWS,
    Sieve,
    Verdict,
)
from gradsieve.training.scaling import Scaling
from gradsieve.training.settings import Settings

NO_SIEVE = "no sieve"
LEADS_BACK = {1: VANISHED_GROWS, -1: EXPLODED_FALLS}
STEERED = {1: "vanished, steered back", -1: "exploded, steered back"}
SELECTED = {1: "vanished, examples selected", -1: "exploded, examples selected"}
NONE_HELPS = {1: "vanished, no example helps", -1: "exploded, no example helps"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one minibatch."""

    verdict: Verdict
    loss: float  # per example
    gradient_norm: float
    stalled: bool = False


class Stepper:
    """The moving part of a run: the weights, their velocity, and how long nothing was kept.

    `learning_rate` is that of the epoch. What is skipped is still seen by the scaling.
    """

    def __init__(self, net: SRN, settings: Settings) -> None:
        self.net = net
        self.settings = settings
        self.learning_rate = settings.learning_rate
        decay, bound = settings.rms_decay, settings.rms_bound
        self.scaling = None if decay is None else Scaling(net.flat.size, decay, bound)
        self.velocity = np.zeros_like(net.flat)
        self.skipped_in_a_row = 0
        self.flow: Flow | None = None
        self.applied: Array | None = None  # the last update that was kept

    def step(self, u: Array, t: Array, starts: Array | None) -> Outcome:
        """Train on one minibatch, or leave it."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is never applied
            return self._step(self._propagate(u, t, starts))

    def _step(self, flow: Flow) -> Outcome:
        loss = flow.loss / flow.u.shape[1]
        gradient = self._gradient(flow)
        norm = kernel.norm(gradient)
        if not math.isfinite(loss + norm):
            return self._skip(Verdict(False, NOT_FINITE), loss, norm)
        if self.scaling is not None:
            self.scaling.observe(gradient)
        proposal = self._propose(gradient)
        sieve = self.settings.sieve
        if sieve is None:
            verdict = Verdict(True, NO_SIEVE, self._watched(flow))
        elif sieve.policy in ("steer", "hold"):
            verdict = self._steer(sieve, flow, proposal)
        elif sieve.policy == "select":
            verdict, proposal = self._select(sieve, flow, proposal)
        else:
            verdict = self._judge(sieve, flow, proposal)
        if verdict.keep and not self._apply(proposal):
            verdict = Verdict(False, NOT_FINITE, verdict.Q)
        return Outcome(verdict, loss, norm) if verdict.keep else self._skip(verdict, loss, norm)

    def _gradient(self, flow: Flow) -> Array:
        """The summed gradient in the network's precision, which the reference engine's is not."""
        return flow.gradient.flat.astype(self.velocity.dtype, copy=False)

    def _propagate(self, u: Array, t: Array, starts: Array | None) -> Flow:
        self.flow = propagate(self.net, u, t, starts, self.settings.engine, self.flow)
        return self.flow

    def _measure(self, flow: Flow) -> NormChange:
        """S and Q of the minibatch, without any prediction."""
        last = flow.of_last_step()
        sieve = self.settings.sieve
        if sieve is None and last.length < 2:  # one step has no far gradient
            return NormChange(math.nan, math.nan, math.nan, math.nan, math.nan)
        horizon = last.length - 1 if sieve is None else checked_horizon(last, sieve.horizon)
        return summarise(last.norms(None, horizon, "full"))

    def _watched(self, flow: Flow) -> float:
        """What a run without a sieve records as Q."""
        if self.settings.measure == "slow Q" and flow.length > 1:
            return slow_factor(flow)
        return self._measure(flow).Q

    def _propose(self, gradient: Array) -> Array:
        """μ v − α g, with g scaled, and then clipped to its largest norm, if that is asked for."""
        if self.scaling is not None:
            gradient = self.scaling(gradient)
        clip, norm = self.settings.clip, kernel.norm(gradient)
        factor = clip / norm if clip is not None and norm > clip else 1.0
        rate = self.learning_rate * factor
        return kernel.propose(self.settings.momentum, self.velocity, rate, gradient)

    def _apply(self, proposal: Array) -> bool:
        """Move the weights, unless that would leave them not finite."""
        if not kernel.move(self.net.flat, proposal):
            return False
        self.velocity = proposal
        self.applied = proposal
        self.skipped_in_a_row = 0
        return True

    def _judge(self, sieve: Sieve, flow: Flow, proposal: Array) -> Verdict:
        measured = self._measure(flow)
        if not sieve.needs_change(measured.Q):
            return sieve.judge(NormChange(measured.S, math.nan, math.nan, measured.Q, math.nan))
        update = flow.net.like(proposal)
        return sieve.judge(norm_change(flow, update, sieve.horizon, sieve.estimator))

    def _steer(self, sieve: Sieve, flow: Flow, proposal: Array) -> Verdict:
        """Add to the proposal, in place, the smallest correction that turns Q back."""
        slow = sieve.policy == "hold"
        Q = slow_factor(flow, sieve.horizon, sieve.window) if slow else self._measure(flow).Q
        wanted = sieve.wanted_sign(Q)
        if math.isnan(Q):
            return Verdict(False, NOT_FINITE, Q)
        if wanted == 0:
            return self._bounded(sieve, flow, proposal, Verdict(True, IN_RANGE, Q))
        if slow:
            slope = slow_gradient(flow, sieve.horizon, sieve.window)
        else:
            slope = norm_gradient(flow, sieve.horizon, "Q")
        # dQ·ln 10 is the change of ln‖δ(T)‖ − ln‖δ(T−h)‖, so what leads back is −wanted.
        predicted = -math.log(10) * inner(slope.flat, proposal)
        lack = sieve.steer_rate - wanted * predicted
        if not math.isfinite(lack):
            return Verdict(False, NOT_FINITE, Q)
        if lack <= 0:
            leads_back = Verdict(True, LEADS_BACK[wanted], Q, math.nan, predicted)
            return self._bounded(sieve, flow, proposal, leads_back)
        slope.w_out[:] = 0  # only what carries the gradient back in time is steered
        slope.b_out[:] = 0
        square = inner(slope.flat, slope.flat)
        if not (math.isfinite(square) and square > 0):
            return Verdict(True, STEERED[wanted] + ": no way found", Q)
        proposal -= (wanted * lack / (math.log(10) * square)) * slope.flat
        steered = Verdict(True, STEERED[wanted], Q, math.nan, wanted * sieve.steer_rate)
        return self._bounded(sieve, flow, proposal, steered)

    def _bounded(self, sieve: Sieve, flow: Flow, proposal: Array, verdict: Verdict) -> Verdict:
        """The verdict, unless this proposal would change the far norm by more than `max_change`."""
        if sieve.max_change is None:
            return verdict
        change = norm_change(flow, flow.net.like(proposal), sieve.horizon, sieve.estimator)
        if not abs(change.relative) > sieve.max_change:
            return verdict
        return Verdict(False, TOO_LARGE, change.Q, change.dS, change.relative)

    def _select(self, sieve: Sieve, flow: Flow, proposal: Array) -> tuple[Verdict, Array]:
        """Where Q is out of range, train on the examples whose contribution leads back."""
        Q = self._measure(flow).Q
        wanted = sieve.wanted_sign(Q)
        if math.isnan(Q) or wanted == 0:
            return self._judge(sieve, flow, proposal), proposal
        contributions = example_contributions(
            flow, self.learning_rate, sieve.horizon, sieve.estimator
        )
        chosen = wanted * contributions > 0
        if not chosen.any():
            return Verdict(False, NONE_HELPS[wanted], Q), proposal
        t = flow.t[:, chosen] if flow.per_step else flow.t[chosen]
        starts = None if flow.starts is None else flow.starts[chosen]
        rest = propagate(self.net, flow.u[:, chosen], t, starts, self.settings.engine)
        proposal = self._propose(self._gradient(rest))
        verdict = Verdict(True, SELECTED[wanted], Q, float(contributions[chosen].sum()))
        return self._bounded(sieve, flow, proposal, verdict), proposal

    def _skip(self, verdict: Verdict, loss: float, norm: float) -> Outcome:
        """Leave the minibatch; say what becomes of the velocity; break a stall."""
        sieve = self.settings.sieve
        self.skipped_in_a_row += 1
        if verdict.reason == NOT_FINITE or sieve is None or sieve.on_skip == "reset":
            self.velocity = np.zeros_like(self.velocity)
        elif sieve.on_skip == "decay":
            self.velocity = self.settings.momentum * self.velocity
        if sieve is None or self.skipped_in_a_row < sieve.stall_after:
            return Outcome(verdict, loss, norm)
        self.skipped_in_a_row = 0
        if verdict.reason == NOT_FINITE or self.flow is None:
            return Outcome(verdict, loss, norm, stalled=True)
        self.velocity = np.zeros_like(self.velocity)
        if not self._apply(self._propose(self._gradient(self.flow))):
            return Outcome(Verdict(False, NOT_FINITE, verdict.Q), loss, norm, stalled=True)
        broken = Verdict(True, STALL_BROKEN, verdict.Q, verdict.dS, verdict.relative)
        return Outcome(broken, loss, norm, stalled=True)


def inner(left: Array, right: Array) -> float:
    """The inner product. Not `np.dot`, whose last bits depend on how many threads BLAS has."""
    return float(np.einsum("i,i->", left, right))
