"""AutoClip: the clipping threshold is a quantile of all gradient norms so far.

P. Seetharaman, G. Wichern, B. Pardo and J. Le Roux, "AutoClip: Adaptive gradient clipping for
source separation networks", MLSP 2020. Nobody has to search for a threshold, and it follows the
gradient as it grows or falls.

The history is held as counts of norms in bins whose ends are 2^(1/32) apart, so it stays small
however long a run is, and the threshold is that of the whole history to within 2.2 %.
"""

from __future__ import annotations

import math
from typing import Any

from gradsieve.errors import InvalidArgument

QUANTILE = 0.1  # the best of those that the authors tried
BINS = 32  # in a factor of two


class AutoClip:
    """A threshold from the norms that were observed."""

    def __init__(self, quantile: float = QUANTILE) -> None:
        self.quantile = quantile
        self.counts: dict[int, int] = {}  # by ⌈32 log2(norm)⌉

    def observe(self, norm: float) -> None:
        """Let a norm enter the history, unless it is zero or not finite."""
        if 0 < norm < math.inf:
            place = math.ceil(BINS * math.log2(norm))
            self.counts[place] = self.counts.get(place, 0) + 1

    @property
    def threshold(self) -> float:
        """The quantile, infinite while nothing was observed."""
        wanted = self.quantile * sum(self.counts.values())
        for place in sorted(self.counts):
            wanted -= self.counts[place]
            if wanted <= 0:
                return float(2.0 ** (place / BINS))
        return math.inf

    def state(self) -> dict[str, int]:
        """The history as JSON."""
        return {str(place): count for place, count in self.counts.items()}

    def restore(self, state: Any) -> None:
        """Go on from `state()`; anything else is an InvalidArgument, and changes nothing."""
        try:
            counts = {int(place): count for place, count in state.items()}
        except (AttributeError, TypeError, ValueError):
            counts = {0: 0}
        if not all(type(n) is int and n > 0 and abs(p) < 2048 * BINS for p, n in counts.items()):
            raise InvalidArgument(
                f"the history of gradient norms is {str(state)[:100]}; it must be counts by place"
            )
        self.counts = counts
