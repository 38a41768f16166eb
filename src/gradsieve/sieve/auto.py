"""Policy "auto": hold where nothing is being learned, and leave alone what learns.

Out of range is not the same as stuck: many networks learn well with a gradient that is not flat. So
an update is corrected only where slow Q is out of its range *and* successive gradients do not agree
(learning.py): where plain steps lose the reach that a network has, and on a plateau. A network that
learns, or has learned, is left as it is. One that begins without reach first gets some time to
learn without it.
"""

from __future__ import annotations

from gradsieve.sieve.evidence import Decision, Evidence, Need, Verdict
from gradsieve.sieve.hold import Hold
from gradsieve.sieve.reasons import Reason
from gradsieve.sieve.steer import LN10

CALM = 10  # updates between looks while nothing has to be done
NEAR = 100  # updates in which a gradient far out of range comes e times as near to it
MOST = 1.0  # pull of one update on ln‖far gradient‖


class Auto(Hold):
    """Corrects by slow Q, where learning does not go on."""

    default_range = (-2.0, 1.5)
    default_limit = 3.0
    compares_gradients = True

    def need(self, evidence: Evidence) -> Need:
        return Need.NOTHING if self.learns(evidence) else super().need(evidence)

    def decide(self, evidence: Evidence) -> Decision:
        if self.wanted(evidence.Q) and self.learns(evidence):
            return Decision(Verdict(True, Reason.LEARNING, evidence.Q))
        return super().decide(evidence)

    def learns(self, evidence: Evidence) -> bool:
        """Whether learning goes on, or has had no time to begin."""
        learning = evidence.learning
        return learning is not None and (learning.goes_on or learning.has_time)

    def looks_in(self, evidence: Evidence | None) -> int:
        acting = evidence is not None and evidence.slope is not None
        return self.sieve.every * (1 if acting else CALM)

    def pull(self, Q: float) -> float:
        """In proportion to the distance from the range, where that is more than `steer_rate`."""
        lowest, highest = self.q_range
        distance = max(lowest - Q, Q - highest)
        return max(self.sieve.steer_rate, min(MOST, distance * LN10 / NEAR))
