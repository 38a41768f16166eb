"""Timing that a busy machine does not spoil: contenders take turns, ratios are per turn.

A turn's time of a step is that of its fastest call. On one core that is CPU time of the process:
other work on the core does not count, and disturbs all contenders alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LONG = 0.5  # seconds after which one call of a step is enough
Step = Callable[[], object]  # one update


@dataclass(frozen=True)
class Timing:
    """Seconds of one step in each turn."""

    turns: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.turns)

    def ratio_to(self, other: Timing) -> float:
        """This time over the other one: the median of the turns' ratios."""
        pairs = zip(self.turns, other.turns, strict=True)
        return statistics.median(own / its for own, its in pairs)

    def share_of(self, peaks: Sequence[float], operations: float) -> float:
        """The median share of each turn's peak (operations a second) that a step reaches."""
        pairs = zip(self.turns, peaks, strict=True)
        return statistics.median(operations / own / peak for own, peak in pairs)


def take_turns(
    steps: Mapping[str, Step],
    turns: int,
    seconds: float,
    every_turn: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Timing]:
    """Time every step in each turn, for about so many seconds each, in changing order."""
    for step in steps.values():
        step()
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(turns):
        every_turn()
        for name in sorted(steps, reverse=bool(turn % 2)):
            taken[name].append(_fastest(steps[name], seconds, clock))
    return {name: Timing(tuple(values)) for name, values in taken.items()}


def _fastest(step: Step, seconds: float, clock: Callable[[], float]) -> float:
    """The fastest of the calls that fit in this time; of two at least if they are short."""
    best, spent, calls = float("inf"), 0.0, 0
    while spent < seconds or (calls < 2 and spent < LONG):
        started = clock()
        step()
        taken = clock() - started
        best, spent, calls = min(best, taken), spent + taken, calls + 1
    return best
