"""A time in place of a number of updates: how much search and training fit into it.

One epoch is timed. The search gets `SEARCHING` of the time: as many minibatches a trial as fit and,
where all of `Search.updates` fit, more initial networks. The finals get the rest, so that their
learning rate has cooled down when the time is over. A timer stops what was misjudged.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from gradsieve.fitting._search import Search
from gradsieve.fitting._trials import Choice, Workshop

SEARCHING = 0.4
USED = 0.9  # of the time that is left, as epochs are not all of one length
MOST_NETWORKS = 50


@contextmanager
def time_limit(seconds: float | None, stop: threading.Event) -> Iterator[None]:
    """Set `stop` after this time."""
    timer = None if seconds is None else threading.Timer(seconds, stop.set)
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()


@dataclass(frozen=True)
class Pace:
    """How long an epoch takes, and when all must be done."""

    epoch: float  # seconds
    deadline: float

    @classmethod
    def of(cls, work: Workshop, choice: Choice, deadline: float) -> Pace:
        """Time one epoch."""
        run = work.run(choice, epochs=1, name="timing")
        return cls(max(run.seconds, 1e-6), deadline)

    def searching(self, search: Search, work: Workshop) -> Search:
        """The search that fits into its share of the time."""
        updates_an_epoch = work.recipe.budget.iterations
        epochs = SEARCHING * self._left() * work.jobs / self.epoch
        fitting = epochs * updates_an_epoch / search.trials
        networks = search.networks * max(1.0, min(fitting / search.updates, MOST_NETWORKS))
        updates = max(updates_an_epoch, min(search.updates, int(fitting)))
        return replace(search, updates=updates, networks=int(networks))

    def epochs(self, runs: int, work: Workshop) -> int:
        """Epochs that each of the finals has time for."""
        rounds = math.ceil(runs / work.jobs)
        fitting = int(USED * self._left() / rounds / self.epoch)
        return max(1, min(work.recipe.budget.epochs, fitting))

    def _left(self) -> float:
        return max(0.0, self.deadline - time.perf_counter())
