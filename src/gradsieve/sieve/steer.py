"""Policy "steer": keep every update, and add the smallest correction along ∂Q/∂w that turns Q back.

Where Q is out of range the update shall change ln‖δ(T−h)‖ − ln‖δ(T)‖ = −ln 10 · Q by at least
`steer_rate` towards the range. A proposal that lacks part of it gets that part along ∂Q/∂w:

    correction = −wanted · lack / (ln 10 · ‖∂Q/∂w‖²) · ∂Q/∂w

The correction belongs to the step: it is at most `limit` times as long as the step that the
gradient makes. So it falls with the learning rate, is bounded where the gradient is clipped, and
vanishes at a rate of 0. Momentum does not count in that length: it holds earlier corrections, and
each would allow a longer one.
"""

from __future__ import annotations

import math

from gradsieve.sieve.evidence import Decision, Evidence, Need, Slope, Verdict
from gradsieve.sieve.policy import Policy
from gradsieve.sieve.reasons import LEADS_BACK, Reason, by_side

CORRECTED, STUCK = by_side("CORRECTED"), by_side("STUCK")
LN10 = math.log(10)


class Steer(Policy):
    """Corrects by the Q of Eq. 14."""

    def need(self, evidence: Evidence) -> Need:
        return Need.SLOPE if self.wanted(evidence.Q) else Need.NOTHING

    def decide(self, evidence: Evidence) -> Decision:
        Q, slope = evidence.Q, evidence.slope
        if math.isnan(Q):
            return Decision(Verdict(False, Reason.NOT_FINITE, Q))
        if self.wanted(Q) == 0 or slope is None:
            return Decision(Verdict(True, Reason.IN_RANGE, Q))
        return self.correct(Q, slope)

    def pull(self, Q: float) -> float:
        """By how much an update shall at least turn ln‖far gradient‖ back."""
        return self.sieve.steer_rate

    def correct(self, Q: float, slope: Slope) -> Decision:
        """The correction that the proposal lacks, where it lacks any."""
        wanted = self.wanted(Q)
        predicted = -LN10 * slope.along
        lack = self.pull(Q) - wanted * predicted
        if not math.isfinite(lack):
            return Decision(Verdict(False, Reason.NOT_FINITE, Q))
        if lack <= 0:
            return Decision(Verdict(True, LEADS_BACK[wanted], Q, math.nan, predicted))
        longest = self.sieve.limit * slope.length
        if not (0 < slope.square < math.inf and longest > 0):
            return Decision(Verdict(True, STUCK[wanted], Q, math.nan, predicted))
        size = min(lack / (LN10 * slope.square), longest / math.sqrt(slope.square))
        change = predicted + wanted * size * LN10 * slope.square
        verdict = Verdict(True, CORRECTED[wanted], Q, math.nan, change)
        return Decision(verdict, correction=-wanted * size)
