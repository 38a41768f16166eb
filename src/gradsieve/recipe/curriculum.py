"""A curriculum: short sequences first (Elman 1993), longer ones stage by stage."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from gradsieve.errors import InvalidArgument
from gradsieve.settings import Settings, setting

SHORTEST = 10  # steps: a stage over fewer is left out
NEARLY = 1e-9  # so that a share of 0.7 of 10 is 7


class Stage(NamedTuple):
    """A part of a run: the length it trains on (None is the task's own), and for which epochs."""

    length: int | None
    begins: int
    most: int | None = None  # epochs after which it ends; None is never


@dataclass(frozen=True)
class Curriculum(Settings):
    """Stages over shorter sequences of the same task; the rest of the epochs is over its own."""

    stages: tuple[tuple[float, float], ...] = setting(
        (),
        "Stages, each a share of the length and of the epochs, e.g. 0.2:0.1,0.5:0.14.",
        shape="pairs (share of the length, share of the epochs) of numbers between 0 and 1",
    )
    advance_at: float | None = setting(
        None,
        "Accuracy on a stage's own sequences above which the stage ends before its epochs do.",
        least=0,
        most=1,
        none=True,
    )
    rate_power: float = setting(
        0.0, "In a stage the rate is rate * (T / length)**p, with this p.", least=0
    )
    rate_length: int | None = setting(
        None,
        "Steps that stand for T in this where the task's own sequences are longer, so that their"
        " rate falls with their length, too; e.g. 100.",
        least=1,
        whole=True,
        none=True,
    )
    batch_power: float = setting(
        0.0, "In a stage the minibatch is batch * (T / length)**p, with this p.", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            stages = tuple((float(length), float(epochs)) for length, epochs in self.stages)
        except (TypeError, ValueError):
            stages = ((math.nan, math.nan),)
        if not all(0 < share < 1 for stage in stages for share in stage):
            raise InvalidArgument(
                f"stages is {self.stages}; it must be pairs (share of the length, share of the "
                "epochs) of numbers between 0 and 1"
            )
        if sum(epochs for _, epochs in stages) >= 1:
            raise InvalidArgument(
                f"stages is {self.stages}; some epochs must be left for the task's own length"
            )
        object.__setattr__(self, "stages", stages)

    def lengths(self, length: int, epochs: int) -> tuple[tuple[int, int], ...]:
        """The stages of a run as (steps, epochs); one that would be too short is left out."""
        whole = (
            (int(length * steps + NEARLY), int(epochs * share + NEARLY))
            for steps, share in self.stages
        )
        return tuple((steps, share) for steps, share in whole if steps >= SHORTEST and share >= 1)

    def stage(self, number: int, begins: int, length: int, epochs: int) -> Stage:
        """The stage of this number, counted from 0, which began in this epoch."""
        stages = self.lengths(length, epochs)
        if number < len(stages):
            return Stage(stages[number][0], begins, stages[number][1])
        return Stage(None, begins)

    def rate(self, stage: Stage, length: int) -> float:
        """The factor of the learning rate in a stage of a task of this length."""
        longest = length if self.rate_length is None else min(length, self.rate_length)
        factor: float = (longest / (stage.length or length)) ** self.rate_power
        return factor

    def batch(self, stage: Stage, length: int, batch: int) -> int:
        """How many sequences a minibatch of a stage has."""
        if stage.length is None:
            return batch
        times: float = (length / stage.length) ** self.batch_power
        return max(1, round(batch * times))
