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

CALM = 10  # updates between looks while nothing has to be done


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
        return self.sieve.every if acting else self.sieve.every * CALM
