"""Policy "auto": hold where it is needed, and nothing where it is not.

Out of range is not the same as stuck: many networks learn well with a gradient that is not flat. So
updates are corrected in two cases only. The reach is being *lost*: slow Q was in its range a while
ago and is not now. Or learning has *stopped* with slow Q out of its range. Where the loss is low,
the need is over.

A step that is too large loses more reach than a correction wins back. While reach is being lost,
the *trust*, the share of the learning rate that is used, falls; back in range it rises to 1 again.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gradsieve.sieve.evidence import Decision, Evidence, Need, Verdict
from gradsieve.sieve.hold import Hold
from gradsieve.sieve.reasons import Reason

CALM = 10  # updates between looks while nothing has to be done
FALLS, RISES = 1 - 1 / 50, 1 + 1 / 1000  # trust, per update while reach is lost, or in range
LEAST = 0.01  # trust


class Auto(Hold):
    """Corrects by slow Q, and trusts shorter steps, while reach is lost or learning has stopped."""

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
        return replace(self._decide(evidence), trust=self._trust(evidence))

    def _decide(self, evidence: Evidence) -> Decision:
        if self.wanted(evidence.Q) and evidence.slope is None:
            reason = self.spared(evidence) or Reason.IN_RANGE
            return Decision(Verdict(True, reason, evidence.Q))
        return super().decide(evidence)

    def _trust(self, evidence: Evidence) -> float:
        """The trust after this look."""
        if math.isnan(evidence.Q):
            return evidence.trust
        if self.wanted(evidence.Q) == 0:
            return min(1.0, evidence.trust * RISES**evidence.since)
        lost = evidence.learning is not None and evidence.learning.reached_lately
        if lost and evidence.slope is not None:
            return max(LEAST, evidence.trust * FALLS**evidence.since)
        return evidence.trust

    def looks_in(self, evidence: Evidence | None) -> int:
        acting = evidence is not None and evidence.slope is not None
        return self.sieve.every if acting else self.sieve.every * CALM
