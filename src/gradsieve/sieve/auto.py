"""Policy "auto": hold reach where it is missing, and leave alone what learns without it.

Out of range is not the same as stuck: many networks learn well with a gradient that is not flat. So
`auto` waits for a plateau with slow Q out of its range (learning.py): there reach is missing. From
then on it corrects as `hold` does, until slow Q has stayed in its range for a while. A network that
never comes to such a plateau is trained by plain steps, bit for bit.
"""

from __future__ import annotations

from gradsieve.sieve.evidence import Decision, Evidence, Need, Verdict
from gradsieve.sieve.hold import Hold
from gradsieve.sieve.reasons import Reason
from gradsieve.sieve.steer import LN10

CALM = 10  # updates between looks while nothing has to be held
FAR = 2.0  # decades out of range, beyond which the pull grows
NEAR = 100  # updates in which a gradient further out comes e times as near to that
MOST = 1.0  # pull of one update on ln‖far gradient‖


class Auto(Hold):
    """Corrects by slow Q, once reach has been missing."""

    default_range = (-2.0, 1.5)
    compares_gradients = True

    def need(self, evidence: Evidence) -> Need:
        return super().need(evidence) if self.holds(evidence) else Need.NOTHING

    def decide(self, evidence: Evidence) -> Decision:
        if self.wanted(evidence.Q) and not self.holds(evidence):
            return Decision(Verdict(True, Reason.LEARNING, evidence.Q))
        return super().decide(evidence)

    def holds(self, evidence: Evidence | None) -> bool:
        """Whether reach has to be held; so it has where nothing is known of learning."""
        return evidence is not None and (evidence.learning is None or bool(evidence.learning.held))

    def looks_in(self, evidence: Evidence | None) -> int:
        return self.sieve.every * (1 if self.holds(evidence) else CALM)

    def pull(self, Q: float) -> float:
        """`steer_rate`, and far out of range in proportion to the distance."""
        lowest, highest = self.q_range
        further = max(lowest - Q, Q - highest) - FAR
        return max(self.sieve.steer_rate, min(MOST, further * LN10 / NEAR))
