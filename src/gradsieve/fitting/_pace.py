"""A time limit in place of a number of updates: the search and training that fit into it.

One epoch of each cell is timed. The search gets `SEARCHING` of the time: as many minibatches a
trial as fit and, where all of `Search.updates` fit, more initial networks. The finals get the rest,
so that their learning rate has cooled down when the time is over. A thread watches the clock, and
stops a run that takes longer than predicted.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from gradsieve.fitting._search import Search
from gradsieve.fitting._trials import Choice, Workshop, choices

Clock = Callable[[], float]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter, "cpu": time.process_time}
LOOK_AGAIN = 0.05  # seconds from one look at the clock to the next
PARTS = 5  # a fifth of an epoch's minibatches is timed
SEARCHING = 0.4
LEAST_UPDATES = 100  # of a trial, below which fewer choices are tried
USED = 0.9  # of the time that is left, as epochs are not all of one length
MOST_NETWORKS = 50


@contextmanager
def time_limit(clock: Clock, deadline: float | None, stop: threading.Event) -> Iterator[None]:
    """Set `stop` once the clock is past the deadline."""
    over = threading.Event()

    def wait() -> None:
        while deadline is not None and clock() < deadline and not over.is_set():
            over.wait(min(LOOK_AGAIN, max(0.0, deadline - clock())))
        if not over.is_set():
            stop.set()

    if deadline is not None:
        threading.Thread(target=wait, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@dataclass(frozen=True)
class Pace:
    """How long an epoch of each cell takes, and when all must be done."""

    epoch: dict[str, float]  # seconds
    deadline: float
    clock: Clock

    @classmethod
    def of(cls, work: Workshop, search: Search, clock: Clock, deadline: float) -> Pace:
        """Time a part of an epoch of each cell."""
        iterations = work.recipe.budget.iterations
        few = max(1, iterations // PARTS)
        one, short = (
            replace(work, recipe=work.recipe.replaced(iterations=many)) for many in (1, few)
        )
        took: dict[str, float] = {}
        for choice in choices(search, work.recipe):
            if choice.cell not in took:
                one.run(choice, epochs=1, name="timing")  # loads the cell's libraries
                began = clock()
                short.run(choice, epochs=1, name="timing")
                took[choice.cell] = max(clock() - began, 1e-6) * iterations / few
        return cls(took, deadline, clock)

    def searching(self, search: Search, work: Workshop) -> tuple[Search, list[Choice]]:
        """The search that fits into its share of the time, and its choices.

        Where not all choices fit, a random subset of them is tried (Bergstra and Bengio 2012), with
        one of each cell at least.
        """
        iterations, asked = work.recipe.budget.iterations, choices(search, work.recipe)
        time_left = SEARCHING * self._left() * self._side_by_side(work)
        each = sum(self.epoch[choice.cell] for choice in asked) / iterations  # an update of all
        if time_left < LEAST_UPDATES * each:
            asked = self._drawn(asked, time_left * iterations / LEAST_UPDATES, work.seed)
            return replace(search, updates=LEAST_UPDATES), asked
        fitting = time_left / each
        networks = search.networks * max(1.0, min(fitting / search.updates, MOST_NETWORKS))
        updates = max(iterations, min(search.updates, int(fitting)))
        search = replace(search, updates=updates, networks=int(networks))
        return search, choices(search, work.recipe)

    def _drawn(self, asked: list[Choice], epochs_of_time: float, seed: int) -> list[Choice]:
        """A random subset whose epochs take no longer than this, but for one of each cell."""
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(asked))
        drawn: list[Choice] = []
        for choice in (asked[number] for number in order):
            new = choice.cell not in {other.cell for other in drawn}
            if new or epochs_of_time >= self.epoch[choice.cell]:
                drawn.append(choice)
                epochs_of_time -= self.epoch[choice.cell]
        return drawn

    def epochs(self, finalists: Sequence[Choice], work: Workshop) -> list[int]:
        """Epochs that each of the finals has time for."""
        rounds = math.ceil(len(finalists) / self._side_by_side(work))
        time_each = USED * self._left() / rounds
        most = work.recipe.budget.epochs
        return [max(1, min(most, int(time_each / self.epoch[choice.cell]))) for choice in finalists]

    def _side_by_side(self, work: Workshop) -> int:
        """Runs at a time; a CPU's seconds are those of all of them."""
        return work.jobs if self.clock is CLOCKS["wall"] else 1

    def _left(self) -> float:
        return max(0.0, self.deadline - self.clock())
