"""Why an update was kept, corrected or left out: every reason there is, and the words for people.

Records hold a reason by its name (`reason.name`), so that words may change; `Reason.read` finds it
again. Code compares members, never words.
"""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """One reason. `str(reason)` is the words."""

    NO_SIEVE = "no sieve"
    NOT_LOOKED_AT = "between looks"
    NOT_JUDGED = "not judged"
    IN_RANGE = "in range"
    LEARNING = "out of range, but learning goes on"
    NOT_FINITE = "not finite"
    TOO_LARGE = "change too large"
    VANISHED_GROWS = "vanished, grows back"
    VANISHED_FALLS = "vanished, would fall further"
    VANISHED_CORRECTED = "vanished, corrected"
    VANISHED_STUCK = "vanished, no correction found"
    VANISHED_SELECTED = "vanished, examples selected"
    VANISHED_NONE_HELPS = "vanished, no example helps"
    EXPLODED_FALLS = "exploded, falls back"
    EXPLODED_GROWS = "exploded, would grow further"
    EXPLODED_CORRECTED = "exploded, corrected"
    EXPLODED_STUCK = "exploded, no correction found"
    EXPLODED_SELECTED = "exploded, examples selected"
    EXPLODED_NONE_HELPS = "exploded, no example helps"
    STALL_BROKEN = "stall broken"
    LEFT_OUT = "left out at random"

    def __str__(self) -> str:
        return self.value

    @property
    def corrected(self) -> bool:
        """Whether a correction was added to the update."""
        return self in (Reason.VANISHED_CORRECTED, Reason.EXPLODED_CORRECTED)

    @classmethod
    def read(cls, text: str) -> Reason | None:
        """The reason of this name, or of these words; None where there is none."""
        return _BY_TEXT.get(text)


def by_side(kind: str) -> dict[int, Reason]:
    """The reason of this kind by the wanted sign: +1 where it has vanished, −1 where exploded."""
    return {1: Reason[f"VANISHED_{kind}"], -1: Reason[f"EXPLODED_{kind}"]}


LEADS_BACK = {1: Reason.VANISHED_GROWS, -1: Reason.EXPLODED_FALLS}
LEADS_AWAY = {1: Reason.VANISHED_FALLS, -1: Reason.EXPLODED_GROWS}

_BY_TEXT = {reason.name: reason for reason in Reason} | {reason.value: reason for reason in Reason}
_BY_TEXT |= {  # version 0.1 wrote words
    "vanished, steered back": Reason.VANISHED_CORRECTED,
    "exploded, steered back": Reason.EXPLODED_CORRECTED,
    "vanished, steered back: no way found": Reason.VANISHED_STUCK,
    "exploded, steered back: no way found": Reason.EXPLODED_STUCK,
    "drawn to be skipped": Reason.LEFT_OUT,
}
