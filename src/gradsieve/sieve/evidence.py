"""What a policy is told, and what it answers: small values of plain numbers.

An adapter first measures Q and asks `policy.need(evidence)` what else the decision depends on. It
fills that in and asks `policy.decide(evidence)`. So nothing is computed that no decision needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

from gradsieve.change import NormChange
from gradsieve.sieve.learning import Learning
from gradsieve.sieve.reasons import Reason


class Need(Enum):
    """What a decision depends on beside Q."""

    NOTHING = "nothing"
    CHANGE = "the change that the proposal would make"
    SLOPE = "the derivative of Q by the weights"
    CONTRIBUTIONS = "each example's contribution to dS"


@dataclass(frozen=True, slots=True)
class Slope:
    """∂Q/∂w beside one proposal dw."""

    along: float  # ⟨∂Q/∂w, dw⟩: the change of Q that the proposal makes, to first order
    square: float  # ‖∂Q/∂w‖² over the weights that a correction may move
    length: float  # of dw over the same weights, without earlier corrections


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one minibatch, or of one module of a model, and its proposed update."""

    Q: float  # Eq. 14's or slow Q, as the policy's `measure` says
    learning: Learning | None = None  # whether learning goes on, for a policy that asks
    change: NormChange | None = None
    slope: Slope | None = None
    contributions: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an update is kept, why, and the numbers that decided it."""

    keep: bool
    reason: Reason
    Q: float = math.nan
    dS: float = math.nan
    relative: float = math.nan  # the change of ln‖δ(T−h)‖, predicted

    def because(self, reason: Reason, keep: bool) -> Verdict:
        """The same numbers under another reason."""
        return replace(self, reason=reason, keep=keep)


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and what is to be done to the update."""

    verdict: Verdict
    correction: float = 0.0  # times ∂Q/∂w, to be added to the update
    chosen: tuple[bool, ...] = ()  # the examples to train on instead of all
