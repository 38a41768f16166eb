"""Timing that a busy machine does not spoil: contenders take turns, ratios are per turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Step = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of one step: the median of all turns, and each turn."""

    turns: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.turns)

    def ratio_to(self, other: Timing) -> tuple[float, float, float]:
        """How many times as long as the other: median, lowest and highest over the turns."""
        ratios = [own / its for own, its in zip(self.turns, other.turns, strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)


def take_turns(
    steps: Mapping[str, Step],
    turns: int,
    seconds: float,
    before: Callable[[str], None] = lambda name: None,
) -> dict[str, Timing]:
    """Time every step in each turn, for about so many seconds each, in changing order."""
    counts = {}
    for name, step in steps.items():
        before(name)
        step()
        started = time.perf_counter()
        step()
        counts[name] = max(1, round(seconds / (time.perf_counter() - started)))
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(turns):
        order = list(steps) if turn % 2 else list(reversed(list(steps)))
        for name in order:
            step, count = steps[name], counts[name]
            started = time.perf_counter()
            for _ in range(count):
                step()
            taken[name].append((time.perf_counter() - started) / count)
    return {name: Timing(tuple(values)) for name, values in taken.items()}
