"""Policy "select": where Q is out of range, train on the examples that lead back.

The contribution of example i is ⟨∂S/∂w, −α gᵢ⟩ (DESIGN section 3): the dS of the update by that
example alone. The paper's abstract promises it; its algorithm judges whole minibatches.
"""

from __future__ import annotations

import math

from gradsieve.sieve.evidence import Decision, Evidence, Need, Verdict
from gradsieve.sieve.policy import Policy
from gradsieve.sieve.reasons import Reason, by_side

SELECTED, NONE_HELPS = by_side("SELECTED"), by_side("NONE_HELPS")


class Select(Policy):
    """Keeps the examples whose contribution has the wanted sign."""

    def need(self, evidence: Evidence) -> Need:
        return Need.CONTRIBUTIONS if self.wanted(evidence.Q) else Need.NOTHING

    def decide(self, evidence: Evidence) -> Decision:
        Q, wanted = evidence.Q, self.wanted(evidence.Q)
        if math.isnan(Q):
            return Decision(Verdict(False, Reason.NOT_FINITE, Q))
        if wanted == 0:
            return Decision(Verdict(True, Reason.IN_RANGE, Q))
        chosen = tuple(wanted * share > 0 for share in evidence.contributions)
        if not any(chosen):
            return Decision(Verdict(False, NONE_HELPS[wanted], Q))
        dS = sum(share for share, kept in zip(evidence.contributions, chosen, strict=True) if kept)
        return Decision(Verdict(True, SELECTED[wanted], Q, dS), chosen=chosen)
