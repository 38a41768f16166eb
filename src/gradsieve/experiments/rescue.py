"""Networks that begin where the gradient has vanished: can they still be taught?

The paper's Figure 1 shows that a variance of 0.005 makes the initial gradient vanish, and leaves it
there. A person whose network does not learn long dependencies is in just that place.
"""

from __future__ import annotations

from gradsieve.experiments.config import Cell, RunConfig
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Arm, Scope, cell_configs

VANISHED = 0.005
ARMS = (Arm("off", clipped=True), Arm("full", clipped=True), Arm("steer", clipped=True))


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """The tasks of the scope at T = 60 and 100, or at the lengths that were asked for."""
    lengths = scope.lengths if scope.lengths != Scope().lengths else (60, 100)
    tasks = scope.tasks if scope.tasks != Scope().tasks else ("temporal_order",)
    return [
        config
        for length in sorted(lengths)
        for task in tasks
        for config in cell_configs(ARMS, Cell(task, length, VANISHED), scope, store)
    ]
