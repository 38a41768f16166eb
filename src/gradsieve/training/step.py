"""One minibatch: propose an update, judge it, and carry out the decision.

This is the core's adapter of the sieve: it gathers the evidence that a policy asks for and carries
out the policy's decision. It decides nothing itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gradsieve import kernel
from gradsieve.errors import InvalidArgument
from gradsieve.flow import Engine, Flow, propagate
from gradsieve.network import SRN, Array
from gradsieve.recipe import Recipe
from gradsieve.sieve import Decision, Evidence, Learning, Policy, Reason, StallGuard, Verdict
from gradsieve.training.descent import Descent
from gradsieve.training.evidence import complete, cosine, measured_Q


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one minibatch."""

    verdict: Verdict
    loss: float  # per example
    gradient_norm: float
    stalled: bool = False


@dataclass(frozen=True)
class Extension:
    """A study's addition to a step, for which a recipe has no setting."""

    policy: Policy | None = None  # in place of the recipe's
    penalty: Callable[[Flow], Array] | None = None  # a gradient to add, flat
    leaves_out: Callable[[Array], bool] | None = None  # whether inputs u are left out, unseen
    observe: Callable[[SRN, Outcome, Stepper], None] | None = None  # given the network before

    @property
    def changes_the_run(self) -> bool:
        """Whether the recipe alone would not make the run again."""
        return any(one is not None for one in (self.policy, self.penalty, self.leaves_out))


class Stepper:
    """Trains a network minibatch by minibatch."""

    def __init__(
        self,
        net: SRN,
        recipe: Recipe,
        engine: Engine = "native",
        extension: Extension = Extension(),
    ) -> None:
        self.net = net
        self.recipe = recipe
        self.engine = engine
        self.extension = extension
        self.descent = Descent(net, recipe.optimiser)
        self.policy = extension.policy
        if self.policy is None and recipe.sieve is not None:
            self.policy = recipe.sieve.at_work()
        self.learning = Learning()
        self.before = np.zeros_like(net.flat)  # the gradient of the last minibatch
        self.looks_in = 1  # the next look is at this step from now
        self.guard = StallGuard(self.policy.sieve.stall_after if self.policy else 1)
        self.flow: Flow | None = None

    def step(self, u: Array, t: Array, starts: Array | None) -> Outcome:
        """Train on one minibatch, or leave it out."""
        watched = self.extension.observe
        before = self.net.copy() if watched else self.net
        with np.errstate(over="ignore", invalid="ignore"):  # left out as not finite
            outcome = self._step(u, t, starts)
        if watched:
            watched(before, outcome, self)
        return outcome

    def _step(self, u: Array, t: Array, starts: Array | None) -> Outcome:
        if self.extension.leaves_out is not None and self.extension.leaves_out(u):
            self.descent.leave_out("decay")
            return Outcome(Verdict(False, Reason.LEFT_OUT), math.nan, math.nan)
        flow = self.flow = propagate(self.net, u, t, starts, self.engine, self.flow)
        loss, gradient = flow.loss / flow.u.shape[1], self._gradient(flow)
        norm = kernel.norm(gradient)
        if not math.isfinite(loss + norm):
            return self._left_out(Verdict(False, Reason.NOT_FINITE), loss, norm)
        if self.policy is not None and self.policy.compares_gradients:
            self.learning.observe(cosine(self.net, gradient, self.before))
            self.before[:] = gradient
        self.descent.observe(gradient)
        proposal = self.descent.propose(gradient)
        decision, proposal = self._decide(flow, proposal)
        verdict = decision.verdict
        if verdict.keep and not self.descent.apply(proposal):
            verdict = Verdict(False, Reason.NOT_FINITE, verdict.Q)
        if not verdict.keep:
            return self._left_out(verdict, loss, norm)
        self.guard.stalled(kept=True)
        return Outcome(verdict, loss, norm)

    def _gradient(self, flow: Flow) -> Array:
        """The summed gradient in the network's precision, which the reference engine's is not."""
        gradient: Array = flow.gradient.flat.astype(self.net.dtype, copy=False)
        if self.extension.penalty is not None:
            gradient = gradient + self.extension.penalty(flow).astype(self.net.dtype, copy=False)
        return gradient

    def _decide(self, flow: Flow, proposal: Array) -> tuple[Decision, Array]:
        """The policy's decision, and the proposal as it makes it."""
        policy = self.policy
        if policy is None:
            return Decision(Verdict(True, Reason.NO_SIEVE, measured_Q(flow, None))), proposal
        self.looks_in -= 1
        if self.looks_in > 0:
            return Decision(Verdict(True, Reason.NOT_LOOKED_AT)), proposal
        Q = measured_Q(flow, policy)
        self.learning.note_range(policy.wanted(Q) == 0)
        evidence = Evidence(Q, self.learning)
        evidence, slope = complete(policy, evidence, flow, proposal, self.descent)
        decision = policy.decide(evidence)
        self.looks_in = policy.looks_in(evidence)
        if decision.correction and slope is not None:
            proposal += proposal.dtype.type(decision.correction) * slope.flat
        if decision.chosen:
            proposal = self.descent.propose(self._gradient(self._only(flow, decision.chosen)))
        return decision, proposal

    def _only(self, flow: Flow, chosen: tuple[bool, ...]) -> Flow:
        """The flow of some of the examples."""
        which = np.array(chosen)
        t = flow.t[:, which] if flow.per_step else flow.t[which]
        starts = None if flow.starts is None else flow.starts[which]
        return propagate(self.net, flow.u[:, which], t, starts, self.engine)

    def _left_out(self, verdict: Verdict, loss: float, norm: float) -> Outcome:
        """Leave the minibatch out: keep, decay or reset the velocity, and break a stall.

        Where something is not finite, the velocity is reset: it may be the cause.
        """
        finite = verdict.reason is not Reason.NOT_FINITE
        on_skip = self.policy.sieve.on_skip if self.policy and finite else "reset"
        self.descent.leave_out(on_skip)
        if self.policy is None or not self.guard.stalled(kept=False):
            return Outcome(verdict, loss, norm)
        if not finite or self.flow is None:
            return Outcome(verdict, loss, norm, stalled=True)
        self.descent.leave_out("reset")
        if not self.descent.apply(self.descent.propose(self._gradient(self.flow))):
            return Outcome(verdict.because(Reason.NOT_FINITE, False), loss, norm, stalled=True)
        return Outcome(verdict.because(Reason.STALL_BROKEN, True), loss, norm, stalled=True)

    def state(self) -> dict[str, Any]:
        """The sieve's memory from one minibatch to the next, as JSON."""
        state = {
            "looks_in": self.looks_in,
            "in_a_row": self.guard.in_a_row,
            "learning": asdict(self.learning),
        }
        history = self.descent.auto_clip
        return state if history is None else state | {"norms": history.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state()`."""
        own = self.state()
        # The history of norms has places of its own, which AutoClip checks.
        alike = _alike({**state, "norms": 0}, {**own, "norms": 0})
        if not alike or ("norms" in state) != ("norms" in own):
            raise InvalidArgument(
                f"its sieve is {str(state)[:200]}; it must have {', '.join(own)} of a run"
            )
        if self.descent.auto_clip is not None:
            self.descent.auto_clip.restore(state["norms"])
        self.looks_in = state["looks_in"]
        self.guard.in_a_row = state["in_a_row"]
        self.learning = Learning(**state["learning"])


def _alike(found: Any, own: Any) -> bool:
    """Whether two states have the same names, and numbers of the same kind."""
    if isinstance(own, dict):
        return (
            isinstance(found, dict)
            and set(found) == set(own)
            and all(_alike(found[name], own[name]) for name in own)
        )
    if type(own) is int:
        return type(found) is int and found >= 0
    return type(found) in (int, float) and math.isfinite(found)
