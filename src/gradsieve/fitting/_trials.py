"""Runs side by side: the short trials of the search, and the finals.

A run depends on its own choice and the seed only, so other runs beside it do not change its result.
Runs are compared by validation loss, which says more than accuracy where the validation part is
small.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from gradsieve.fitting._gated_run import Beginning, GatedRun
from gradsieve.fitting._search import FittedCell, Search
from gradsieve.fitting._task import OwnTask
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.training import Job, Run, run_one

OnRecord = Callable[[str, int, dict[str, Any]], None]  # a run's name, its epochs, a record


@dataclass(frozen=True)
class Choice:
    """The settings of one trial."""

    start: str
    learning_rate: float
    noise: float
    network: int = 0  # which initial network
    cell: FittedCell = "tanh"

    def __str__(self) -> str:
        return (
            f"{self.cell}, {self.start}, rate {self.learning_rate:g}, noise {self.noise:g}, "
            f"network {self.network + 1}"
        )


@dataclass(frozen=True, eq=False)
class Trial:
    """A choice and its run; None where there was nothing to choose from."""

    choice: Choice
    run: Run | GatedRun | None = None

    @property
    def loss(self) -> float:
        """On the validation part; infinite where it was not run."""
        return math.inf if self.run is None else self.run.validation_loss

    @property
    def interrupted(self) -> bool:
        return self.run is not None and self.run.stopped == "interrupted"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self.choice) | {
            "validation_loss": None if self.run is None else self.run.validation_loss,
            "validation_accuracy": None if self.run is None else self.run.validation_accuracy,
        }


def choices(search: Search, recipe: Recipe) -> list[Choice]:
    """Everything that is tried, network by network."""
    rates = search.rates or (recipe.optimiser.learning_rate,)
    return [
        Choice(start, rate, noise, number, cell)
        for number in range(search.networks)
        for cell in search.cells
        for start in search.starts_of(cell) or (recipe.start.recurrent,)
        for rate, noise in product(rates, search.noises)
    ]


@dataclass(frozen=True, eq=False)
class Workshop:
    """The values that all runs of one fit share."""

    task: OwnTask
    recipe: Recipe
    hidden: int
    seed: int
    jobs: int
    on_record: OnRecord | None
    stop: threading.Event

    def run(
        self, choice: Choice, epochs: int, name: str, alike: int = 1, folder: Path | None = None
    ) -> Run | GatedRun:
        """Train one network by this choice; `alike`: how many runs have this name."""
        recipe = self.recipe.replaced(learning_rate=choice.learning_rate, epochs=epochs)
        task, seed = replace(self.task, noise=choice.noise), self.seed + choice.network

        def tell(record: dict[str, Any]) -> None:
            if self.on_record is not None:
                self.on_record(name, alike * epochs, record)

        if choice.cell != "tanh":
            from gradsieve.fitting._gated import train_gated

            begin = Beginning(choice.cell, self.hidden, choice.start, seed)  # type: ignore[arg-type]
            return train_gated(begin, task, recipe, self.seed, tell, self.stop, folder)
        recipe = recipe.replaced(recurrent=choice.start)
        net = SRN.random(
            task.inputs, self.hidden, task.outputs, task.output, start=recipe.start, seed=seed
        )
        about = {"label": str(choice), "network": choice.network, "drawn_by": seed}
        return run_one(net, Job(task, recipe, self.seed, about=about), folder, tell, self.stop)
