"""A learning rate, a noise and an initial network, by short trials side by side.

A trial's result depends on its own seed and rate only, so the search finds the same whatever runs
beside it. Trials are compared by validation loss, which says more than accuracy where the
validation part is small.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from gradsieve.fitting._recipe import Recipe
from gradsieve.fitting._task import OwnTask
from gradsieve.network import SRN, Recurrent
from gradsieve.training import Run, run_one

OnRecord = Callable[[str, int, dict[str, Any]], None]  # a run's name, its last epoch, a record


@dataclass(frozen=True)
class Trial:
    """One short run of the search."""

    learning_rate: float
    noise: float
    initial: Recurrent
    network: int  # which initial network of its kind
    validation_loss: float | None  # None where there was nothing to choose from
    validation_accuracy: float | None


def initial_network(task: OwnTask, recipe: Recipe, initial: Recurrent, number: int) -> SRN:
    train = task.parts.train
    return SRN.random(
        task.inputs,
        recipe.units(train),
        task.outputs,
        task.output,
        variance=recipe.initial_variance(train),
        seed=recipe.seed + number,
        recurrent=initial,
    )


def search(
    task: OwnTask,
    recipe: Recipe,
    jobs: int | None = None,
    on_record: OnRecord | None = None,
) -> tuple[list[Trial], dict[Trial, Run]]:
    """All trials, the best first, and their runs; a single choice is not tried."""
    rates = recipe.rates if recipe.learning_rate is None else (recipe.learning_rate,)
    noises = recipe.noises if recipe.noise is None else (recipe.noise,)
    asked = list(product(recipe.initials, range(recipe.networks), rates, noises))
    if len(asked) == 1:
        initial, number, rate, noise = asked[0]
        return [Trial(rate, noise, initial, number, None, None)], {}
    epochs = recipe.search_epochs(task.parts.train)
    stop = threading.Event()

    def one(initial: Recurrent, number: int, rate: float, noise: float) -> tuple[Trial, Run]:
        name = f"rate {rate:g}, noise {noise:g}, {initial} network {number + 1}"
        run = run_one(
            initial_network(task, recipe, initial, number),
            replace(task, noise=noise),
            recipe.settings(task.parts.train, rate, epochs),
            on_record=None if on_record is None else lambda record: on_record(name, epochs, record),
            stop=stop,
        )
        found = run.validation_loss, run.validation_accuracy
        return Trial(rate, noise, initial, number, *found), run

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        futures = [pool.submit(one, *choice) for choice in asked]
        try:
            runs = dict(future.result() for future in futures)
        except BaseException:
            stop.set()
            raise
    return sorted(runs, key=lambda trial: trial.validation_loss or 0.0), runs
