"""A stall: so many updates left out in a row that training stands still."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class StallGuard:
    """Counts updates that were left out in a row, and says when that is a stall."""

    after: int
    in_a_row: int = 0

    def stalled(self, kept: bool) -> bool:
        """Note the fate of one update; True where it completes a stall, which is then broken."""
        self.in_a_row = 0 if kept else self.in_a_row + 1
        if self.in_a_row < self.after:
            return False
        self.in_a_row = 0
        return True
