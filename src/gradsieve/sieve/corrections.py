"""What a sieve did to updates, in numbers and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Corrections:
    """Counts of updates, over one run or several."""

    updates: int
    corrected: int
    left_out: int
    first: int  # corrections lie between these two updates of a run
    last: int
    between: int  # updates that lie there, over all runs
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def share(self) -> float:
        """The share of all updates that were corrected."""
        return self.corrected / max(1, self.updates)

    def __str__(self) -> str:
        """In words: "corrected 29 % of updates between 2,000 and 9,000"."""
        said = []
        if self.corrected:
            share = rounded(self.corrected / self.between)
            said.append(f"corrected {share} of updates between {self.first:,} and {self.last:,}")
        if self.left_out:
            said.append(f"left out {rounded(self.left_out / self.updates)} of updates")
        return " and ".join(said) or "changed no update"


def rounded(share: float) -> str:
    """A share in whole percent; a small one is not said to be none."""
    return "under 1 %" if 0 < share < 0.01 else f"{100 * share:.0f} %"
