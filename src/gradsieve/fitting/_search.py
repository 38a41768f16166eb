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
from gradsieve.network import SRN
from gradsieve.training import run_one

OnRecord = Callable[[str, int, dict[str, Any]], None]  # a run's name, its last epoch, a record


@dataclass(frozen=True)
class Trial:
    """One short run of the search."""

    learning_rate: float
    noise: float
    network: int  # seed of its initial weights
    validation_loss: float | None  # None where there was nothing to choose from
    validation_accuracy: float | None


def initial_network(task: OwnTask, recipe: Recipe, number: int) -> SRN:
    train = task.parts.train
    return SRN.random(
        task.inputs,
        recipe.units(train),
        task.outputs,
        task.output,
        variance=recipe.initial_variance(train),
        seed=recipe.seed + number,
    )


def search(
    task: OwnTask,
    recipe: Recipe,
    jobs: int | None = None,
    on_record: OnRecord | None = None,
) -> list[Trial]:
    """All trials, the best first."""
    rates = recipe.rates if recipe.learning_rate is None else (recipe.learning_rate,)
    noises = recipe.noises if recipe.noise is None else (recipe.noise,)
    asked = list(product(range(recipe.networks), rates, noises))
    if len(asked) == 1:
        number, rate, noise = asked[0]
        return [Trial(rate, noise, number, None, None)]
    epochs = recipe.search_epochs(task.parts.train)
    stop = threading.Event()

    def one(number: int, rate: float, noise: float) -> Trial:
        name = f"rate {rate:g}, noise {noise:g}, network {number + 1}"
        run = run_one(
            initial_network(task, recipe, number),
            replace(task, noise=noise),
            recipe.settings(task.parts.train, rate, epochs),
            on_record=None if on_record is None else lambda record: on_record(name, epochs, record),
            stop=stop,
        )
        return Trial(rate, noise, number, run.validation_loss, run.validation_accuracy)

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        futures = [pool.submit(one, *choice) for choice in asked]
        try:
            trials = [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise
    return sorted(trials, key=lambda trial: trial.validation_loss or 0.0)
