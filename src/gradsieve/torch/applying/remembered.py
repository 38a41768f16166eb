"""What the sieve remembers from step to step: counters, how learning goes, when it looks next."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from gradsieve.errors import InvalidArgument
from gradsieve.sieve import Corrections, Learning

WHOLE = (
    ("looks_in", 1),
    ("in_a_row", 0),
    ("first_corrected", 0),
    ("last_corrected", 0),
)  # and their defaults
COUNTERS = ("steps", "judged", "kept", "skipped", "corrected", "stalls", "unjudged", "not_finite")


@dataclass
class Remembered:
    """The sieve's own part of a checkpoint."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    reasons: dict[str, int] = field(default_factory=dict)  # how many steps, by Reason.name
    learning: dict[str, Learning] = field(default_factory=dict)  # by name of the module
    looks_in: int = 1  # the next look is at this step from now
    in_a_row: int = 0  # steps left out since the last one that was kept
    first_corrected: int = 0  # number of the first step that was corrected; 0 is none
    last_corrected: int = 0

    def note_correction(self) -> None:
        """Count this step as corrected."""
        self.counts["corrected"] += 1
        self.last_corrected = self.counts["steps"]
        self.first_corrected = self.first_corrected or self.last_corrected

    def corrections(self) -> Corrections:
        """What was done to the steps so far."""
        before = max(0, self.first_corrected - 1)
        return Corrections(
            updates=self.counts["steps"],
            corrected=self.counts["corrected"],
            left_out=self.counts["skipped"],
            first=before,
            last=self.last_corrected,
            between=self.last_corrected - before,
            reasons=Counter(self.reasons),
        )

    def saved(self) -> dict[str, Any]:
        """Plain numbers, which `torch.load(weights_only=True)` takes."""
        return asdict(self)

    @classmethod
    def loaded(cls, saved: Any) -> Remembered:
        """From `saved()`; a state that is not one is refused."""
        if not isinstance(saved, dict):
            raise _refused("the entry", saved, "a dict")
        learning = saved.get("learning", {})
        if not isinstance(learning, dict):
            raise _refused("learning", learning, "a dict")
        counts = dict.fromkeys(COUNTERS, 0) | _whole("counts", saved.get("counts", {}))
        rest = {
            name: _whole(name, {name: saved.get(name, default)})[name] for name, default in WHOLE
        }
        return cls(
            {name: counts[name] for name in COUNTERS},
            _whole("reasons", saved.get("reasons", {})),
            {str(name): _learning(name, values) for name, values in learning.items()},
            **rest,
        )


def _learning(name: object, values: Any) -> Learning:
    known = {one.name for one in fields(Learning)}
    good = isinstance(values, dict) and set(values) <= known
    if not good or not all(_is_number(value) for value in values.values()):
        raise _refused(f"learning of {name!r}", values, f"finite numbers by {', '.join(known)}")
    return Learning(**values)


def _whole(name: str, values: Any) -> dict[str, int]:
    """Whole numbers from 0 by name."""
    if not isinstance(values, dict):
        raise _refused(name, values, "a dict of whole numbers")
    for key, value in values.items():
        if not _is_number(value) or value != int(value) or value < 0:
            raise _refused(f"{name}[{key!r}]", value, "a whole number from 0")
    return {str(key): int(value) for key, value in values.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _refused(what: str, value: Any, wanted: str) -> InvalidArgument:
    return InvalidArgument(
        f"state_dict's 'gradsieve' is no state of gst.Sieve: {what} is {value!r}; "
        f"it must be {wanted}"
    )
