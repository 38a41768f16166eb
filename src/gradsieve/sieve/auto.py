"""Policy "auto": hold where it is needed, and nothing where it is not.

Out of range is not the same as stuck: many networks learn well with a gradient that is not flat. So
updates are corrected in two cases only. The reach is being *lost*: slow Q was in its range a while
ago and is not now. Or learning has *stopped* with slow Q out of its range. Where the loss is low,
the need is over.
"""

from __future__ import annotations

from gradsieve.sieve.evidence import Decision, Evidence, Need, Verdict
from gradsieve.sieve.hold import Hold
from gradsieve.sieve.reasons import Reason
from gradsieve.sieve.steer import LN10

CALM, CALM_AT_FIRST = 25, 10  # updates between looks while nothing has to be done
FIRST = 1000  # updates: reach is lost early or not at all
NEAR = 100  # updates in which a gradient far out of range comes e times as near to it
MOST = 1.0  # pull of one update on ln‖far gradient‖


class Auto(Hold):
    """Corrects by slow Q, while reach is lost or learning has stopped."""

    default_range = (-2.0, 1.5)

    def spared(self, evidence: Evidence) -> Reason | None:
        """Why an update out of range is left as it is, or None where it is to be corrected."""
        learning = evidence.learning
        if learning is None:
            return None
        if learning.done:
            return Reason.LEARNED
        return None if learning.reached_lately or learning.stopped else Reason.LEARNING

    def need(self, evidence: Evidence) -> Need:
        spared = self.wanted(evidence.Q) == 0 or self.spared(evidence) is not None
        return Need.NOTHING if spared else Need.SLOPE

    def decide(self, evidence: Evidence) -> Decision:
        if self.wanted(evidence.Q) and evidence.slope is None:
            reason = self.spared(evidence) or Reason.IN_RANGE
            return Decision(Verdict(True, reason, evidence.Q))
        return super().decide(evidence)

    def looks_in(self, evidence: Evidence | None) -> int:
        acting = evidence is not None and evidence.slope is not None
        if acting:
            return self.sieve.every
        learning = None if evidence is None else evidence.learning
        later = learning is not None and learning.updates >= FIRST
        return self.sieve.every * (CALM if later else CALM_AT_FIRST)

    def pull(self, Q: float) -> float:
        """In proportion to the distance from the range, where that is more than `steer_rate`."""
        lowest, highest = self.q_range
        distance = max(lowest - Q, Q - highest)
        return max(self.sieve.steer_rate, min(MOST, distance * LN10 / NEAR))
