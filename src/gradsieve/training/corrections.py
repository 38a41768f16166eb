"""The sieve's work in runs: how many updates it corrected or left out, and when.

Everything is counted from the records of histories, so that a run that goes on, a finished one and
one of version 0.1 are told alike.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradsieve.sieve import Corrections, Reason

History = Sequence[Mapping[str, Any]]
CORRECTED = {str(reason) for reason in Reason if reason.corrected}


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
    """The sieve's work in these runs."""
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


def reasons(record: Mapping[str, Any]) -> dict[str, int]:
    """How many updates of a record had each reason, by the reason's words."""
    found = record.get("reasons")
    counts: dict[str, int] = {}
    for name, count in found.items() if isinstance(found, Mapping) else ():
        words = str(Reason.read(str(name)) or name)
        counts[words] = counts.get(words, 0) + int(finite(count) or 0)
    return counts


def finite(value: object) -> float | None:
    """The value if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
