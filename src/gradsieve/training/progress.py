"""The counters of a run, and the outcomes since its last validation."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradsieve.errors import InvalidFile
from gradsieve.sieve import Reason
from gradsieve.training.step import Outcome


@dataclass
class Progress:
    """Counters of a run, stored with each checkpoint."""

    epoch: int = 0
    updates: int = 0
    kept: int = 0
    corrected: int = 0
    stalls: int = 0
    nonfinite: int = 0
    validations: int = 0
    stage: int = 0  # of the curriculum
    stage_begins: int = 0  # the epoch in which it began
    best_epoch: int = 0
    best_accuracy: float = -math.inf
    best_loss: float = math.inf
    seconds: float = 0.0

    @classmethod
    def read(cls, path: Path, stored: dict[str, Any]) -> Progress:
        """The counters that a checkpoint holds."""
        names = {item.name: item.type for item in dataclasses.fields(cls)}
        if set(stored) != set(names):
            raise InvalidFile(f"{path}: its counters must be {', '.join(names)}")
        for name, value in stored.items():
            whole = names[name] == "int"
            number = type(value) is int or (type(value) is float and not whole)
            if not number or math.isnan(value) or (name != "best_accuracy" and value < 0):
                raise InvalidFile(
                    f"{path}: its {name} is {str(value)[:60]!r}; it must be a "
                    f"{'whole ' if whole else ''}number of at least 0"
                )
        limits = {
            "kept": "updates",
            "nonfinite": "updates",
            "corrected": "updates",
            "best_epoch": "epoch",
            "validations": "epoch",
            "stage": "epoch",
            "stage_begins": "epoch",
        }
        for name, limit in limits.items():
            if stored[name] > stored[limit]:
                raise InvalidFile(
                    f"{path}: its {name} is {stored[name]}, more than its {limit}, {stored[limit]}"
                )
        if not (stored["best_accuracy"] <= 1 and math.isfinite(stored["seconds"])):
            raise InvalidFile(
                f"{path}: its best_accuracy is {stored['best_accuracy']} and its seconds are "
                f"{stored['seconds']}; no run has these"
            )
        return cls(**stored)

    def add(self, tally: Tally) -> None:
        """Count the outcomes since the last validation."""
        verdicts = [outcome.verdict for outcome in tally.outcomes]
        self.updates += len(verdicts)
        self.kept += sum(verdict.keep for verdict in verdicts)
        self.corrected += sum(verdict.reason.corrected for verdict in verdicts)
        self.stalls += sum(outcome.stalled for outcome in tally.outcomes)
        self.nonfinite += sum(verdict.reason is Reason.NOT_FINITE for verdict in verdicts)
        self.validations += 1


@dataclass
class Tally:
    """The outcomes since the last validation."""

    outcomes: list[Outcome] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        verdicts = [outcome.verdict for outcome in self.outcomes]
        Q = [verdict.Q for verdict in verdicts if math.isfinite(verdict.Q)]
        return {
            "loss": _mean([outcome.loss for outcome in self.outcomes]),
            "Q": _mean(Q),
            "Q_min": min(Q, default=None),
            "Q_max": max(Q, default=None),
            "dS": _mean([verdict.dS for verdict in verdicts]),
            "relative": _mean([verdict.relative for verdict in verdicts]),
            "kept": sum(verdict.keep for verdict in verdicts) / len(verdicts),
            "corrected": sum(verdict.reason.corrected for verdict in verdicts) / len(verdicts),
            "reasons": dict(Counter(verdict.reason.name for verdict in verdicts)),
            "stalls": sum(outcome.stalled for outcome in self.outcomes),
            "nonfinite": sum(verdict.reason is Reason.NOT_FINITE for verdict in verdicts),
            "gradient_norm": _mean([outcome.gradient_norm for outcome in self.outcomes]),
        }


def _mean(values: list[float]) -> float | None:
    usable = [value for value in values if math.isfinite(value)]
    return math.fsum(usable) / len(usable) if usable else None
