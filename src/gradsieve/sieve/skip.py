"""Policy "skip": Algorithm 1 of the paper, as corrected.

The listing in the paper contradicts the text around it (docs/theory.md), and the text counts here.
Where the gradient has *vanished* (Q above its range) an update is kept when the norm will grow
(dS > 0), where it has *exploded* (Q below) when it will fall, and in range always. `max_change` is
the paper's r₀, a bound on |dS|/(2S).
"""

from __future__ import annotations

import math

from gradsieve.change import NormChange
from gradsieve.sieve.evidence import Decision, Evidence, Need, Verdict
from gradsieve.sieve.policy import Policy
from gradsieve.sieve.reasons import LEADS_AWAY, LEADS_BACK, Reason


class Skip(Policy):
    """Keeps an update whose dS has the wanted sign, and leaves out the others."""

    def need(self, evidence: Evidence) -> Need:
        judged = self.sieve.max_change is not None or self.wanted(evidence.Q) != 0
        return Need.CHANGE if judged else Need.NOTHING

    def decide(self, evidence: Evidence) -> Decision:
        return Decision(self.judge(evidence.Q, evidence.change))

    def judge(self, Q: float, change: NormChange | None) -> Verdict:
        """The verdict on an update that makes this change; None where it was not needed."""
        dS = math.nan if change is None else change.dS
        relative = math.nan if change is None else change.relative
        wanted, bound = self.wanted(Q), self.sieve.max_change
        if math.isnan(Q) or ((wanted or bound is not None) and math.isnan(dS)):
            return Verdict(False, Reason.NOT_FINITE, Q, dS, relative)
        if bound is not None and abs(relative) > bound:
            return Verdict(False, Reason.TOO_LARGE, Q, dS, relative)
        if wanted == 0:
            return Verdict(True, Reason.IN_RANGE, Q, dS, relative)
        keep = self.keeps(wanted, dS)
        reasons = LEADS_BACK if dS * wanted > 0 else LEADS_AWAY
        return Verdict(keep, reasons[wanted], Q, dS, relative)

    def keeps(self, wanted: int, dS: float) -> bool:
        """Whether an update out of range is kept: when it leads back."""
        return dS * wanted > 0
