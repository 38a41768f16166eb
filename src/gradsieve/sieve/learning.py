"""Whether learning goes on, has stopped or is done: told by a number that falls as it goes on.

The core gives its loss. Around a PyTorch optimizer the loss is not seen; the norm of the near
gradient stands for it. Both are only compared with their own past.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

FAST, SLOW = 300, 1500  # updates: the memories of the two running means
FALLS = 0.98  # learning goes on while the fast mean is below this share of the slow one
LOW = (
    0.001  # nothing is left to learn once the fast mean is below this share of the highest slow one
)
NEVER = 10**9  # updates: longer than any run
RECENT = 1000  # updates for which a reach that was in range counts as one that can be lost


@dataclass
class Learning:
    """Running means of the signal, and when the measured Q was last in its range."""

    updates: int = 0
    fast: float = 0.0
    slow: float = 0.0
    highest: float = 0.0  # the slow mean at its highest
    since_in_range: int = NEVER

    def observe(self, signal: float, steps: int = 1) -> None:
        """Note the signal, `steps` updates after the last one; one that is not finite is none."""
        if not math.isfinite(signal):
            return
        self.updates += steps
        self.fast += self._share(FAST, steps) * (signal - self.fast)
        self.slow += self._share(SLOW, steps) * (signal - self.slow)
        self.highest = max(self.highest, self.slow)

    def note_range(self, in_range: bool, steps: int) -> None:
        """Note whether Q was in its range at a look, `steps` updates after the last look."""
        self.since_in_range = 0 if in_range else min(NEVER, self.since_in_range + steps)

    def _share(self, memory: int, steps: int) -> float:
        """The weight of a new value in an exponential mean without the zero that it began from."""
        kept = 1 - 1 / memory
        return (1 - kept**steps) / (1 - kept**self.updates)

    @property
    def stopped(self) -> bool:
        """Whether the signal no longer falls."""
        return self.fast > FALLS * self.slow

    @property
    def done(self) -> bool:
        """Whether the signal is far below its highest level."""
        return self.fast < LOW * self.highest

    @property
    def reached_lately(self) -> bool:
        """Whether the gradient was in its range not long ago, so that leaving it is a loss."""
        return self.since_in_range < RECENT
