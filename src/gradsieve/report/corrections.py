"""What the sieve did to the updates of runs: how many it corrected or left out, and when.

Everything is counted from the records of histories, so that a run that goes on, a finished one and
one of version 0.1 are told alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradsieve.report.runs import finite, reasons
from gradsieve.sieve import Reason

History = Sequence[Mapping[str, Any]]
CORRECTED = {str(reason) for reason in Reason if reason.corrected}


@dataclass(frozen=True)
class Corrections:
    """Counts of updates, over one run or several."""

    updates: int
    corrected: int
    left_out: int
    first: int  # corrections lie between these two updates of a run
    last: int
    between: int  # updates that lie there, over all runs
    reasons: Counter[str]

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


@dataclass(frozen=True)
class _Record:
    """The updates of a run from one validation to the next."""

    begin: int
    end: int
    left_out: int
    reasons: Counter[str]

    @property
    def corrected(self) -> int:
        return sum(self.reasons[name] for name in CORRECTED)


def corrections(histories: Iterable[History]) -> Corrections:
    """What the sieve did in these runs."""
    records = [record for history in histories for record in _records(history)]
    acted = [record for record in records if record.corrected]
    first = min((record.begin for record in acted), default=0)
    last = max((record.end for record in acted), default=0)
    inside = [record for record in records if first <= record.begin and record.end <= last]
    total = sum((record.reasons for record in records), Counter())
    return Corrections(
        updates=total.total(),
        corrected=sum(record.corrected for record in acted),
        left_out=sum(record.left_out for record in records),
        first=first,
        last=last,
        between=sum(record.reasons.total() for record in inside),
        reasons=total,
    )


def _records(history: History) -> Iterator[_Record]:
    before = 0
    for record in history:
        found = Counter(reasons(record))
        kept = finite(record.get("kept"))
        left_out = 0 if kept is None else round((1 - kept) * found.total())
        after = int(finite(record.get("updates")) or before + found.total())
        yield _Record(before, after, left_out, found)
        before = after
