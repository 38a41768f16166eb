"""Whether reach has to be held: told by successive gradients, and by slow Q at the looks.

At a plateau successive gradients are noise, and their cosine is zero on average. Where something is
learned, and also where everything has been learned, they have a part in common. A cosine has no
unit: neither the size of the loss nor that of the weights behind the recurrent layer changes it.

A plateau without reach shows that reach is missing. From then on it is held, also while learning
goes on, because plain steps would lose it again; until it has stayed for a while.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MEMORY = 200  # updates that the running mean remembers
AGREE = 0.1  # a mean cosine beyond this, of either sign, is more than noise
PATIENCE = 300  # updates that a network has to begin to learn by itself
STAYS = 200  # looks in range, one after another, after which reach need not be held


@dataclass
class Learning:
    """The running mean of successive gradients' cosine, and what the looks have shown."""

    agreement: float = 0.0  # begins at a plateau's
    updates: int = 0
    looks: int = 0
    began_in_range: int = 0  # 1 where Q was in its range at the first look
    in_range: int = 0  # looks in a row with Q in its range
    held: int = 0  # 1 while reach has to be held

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
        self.in_range = self.in_range + 1 if in_range else 0
        if not in_range and not self.goes_on and not self.has_time:
            self.held = 1
        elif self.in_range >= STAYS and self.goes_on:
            self.held = 0

    @property
    def goes_on(self) -> bool:
        """Whether successive gradients have more in common than noise has."""
        return abs(self.agreement) > AGREE

    @property
    def has_time(self) -> bool:
        """Whether a network that began without reach is still given time to learn without it."""
        return not self.began_in_range and self.updates < PATIENCE
