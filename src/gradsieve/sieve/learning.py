"""Whether learning goes on: told by whether the gradients of successive minibatches agree.

At a plateau successive gradients are noise, and their cosine is zero on average. Where something is
learned, and also where everything has been learned, they have a part in common. A cosine has no
unit: neither the size of the loss nor that of the weights behind the recurrent layer changes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MEMORY = 200  # updates that the running mean remembers
AGREE = 0.1  # a mean cosine beyond this, of either sign, is more than noise
PATIENCE = 400  # updates that a network has to begin to learn by itself


@dataclass
class Learning:
    """The running mean of successive gradients' cosine, and whether there was reach to lose."""

    agreement: float = 0.0  # begins at a plateau's
    updates: int = 0
    looks: int = 0
    began_in_range: int = 0  # 1 where Q was in its range at the first look

    def observe(self, cosine: float) -> None:
        """Note the cosine of an update's gradient with the one before; NaN says nothing."""
        self.updates += 1
        if math.isfinite(cosine):
            self.agreement += (cosine - self.agreement) / MEMORY

    def note_range(self, in_range: bool) -> None:
        """Note whether Q is in its range at a look."""
        if self.looks == 0:
            self.began_in_range = int(in_range)
        self.looks += 1

    @property
    def goes_on(self) -> bool:
        """Whether successive gradients have more in common than noise has."""
        return abs(self.agreement) > AGREE

    @property
    def has_time(self) -> bool:
        """Whether a network that began without reach is still given time to learn without it."""
        return not self.began_in_range and self.updates < PATIENCE
