"""One run of a study, from its configuration to its row. Runs in a worker process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve.errors import InvalidFile
from gradsieve.experiments.config import CORE, RunConfig
from gradsieve.files import open_file
from gradsieve.flow import predict
from gradsieve.network import Array
from gradsieve.training import AnyLength, Problem
from gradsieve.training.data import draw
from gradsieve.training.run import run_one

TOLERANCES = (0.04, 0.08)  # both are reported for the regression tasks, whatever the task's own is
LEARNED = 0.9  # validation accuracy from which on a network is tried on other lengths
SHARES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 25)  # of the training length
MOST_STEPS, SEQUENCES, MOST_VALUES = 5000, 200, 20_000_000

Answers = Callable[[Array, Array | None], Array]  # outputs for u (T,B,I) and starts


def execute(config_json: str, folder: str) -> dict[str, Any]:
    """Train the run's network, going on from its folder, and give its row."""
    config = RunConfig.from_json(config_json)
    if config.cell != CORE:
        from gradsieve.experiments import torch_run

        return torch_run.execute(config)
    net, job = config.initial_network(), config.job()
    clock = Clock()
    run = run_one(net, job, Path(folder) / config.key, on_record=clock)
    if run.stopped == "interrupted":
        raise KeyboardInterrupt
    row = about(config) | run.result()
    row |= {
        "final_Q": run.history[-1]["Q"],
        "cpu_ms": clock.milliseconds,
        "curve": best_so_far(run.history),
    }
    task = job.task
    test = draw(task, net, config.recipe.budget.sizes, job.seed).test

    def answers(u: Array, starts: Array | None) -> Array:
        return predict(run.network, u, job.engine, starts, test.per_step)

    if task.output == "linear":
        u, t, starts = test.batch(slice(None))
        error = np.abs(answers(u, starts) - t).max(axis=1)
        row |= {
            f"within_{tolerance}": float((error <= tolerance).mean()) for tolerance in TOLERANCES
        }
        row["squared_error"] = float((error**2).mean())
    row["at_length"] = at_lengths(task, answers, run.validation_accuracy)
    return row


def about(config: RunConfig) -> dict[str, Any]:
    """The columns of a row that come from its run's configuration."""
    return {
        "task": config.condition.task,
        "length": config.condition.length,
        "sieve": config.arm,
        "seed": config.network,
        "learning_rate": config.recipe.optimiser.learning_rate,
        "clip": config.recipe.optimiser.clip,
    }


class Clock:
    """Keeps this process's CPU time at each record of a history."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, float]] = []

    def __call__(self, record: dict[str, Any]) -> None:
        self.seen.append((record["updates"], time.process_time()))

    @property
    def milliseconds(self) -> float | None:
        """CPU time of an update, its share of the validations in it; None of a single record."""
        if len(self.seen) < 2:
            return None
        (first, began), (last, ended) = self.seen[0], self.seen[-1]
        return 1000 * (ended - began) / (last - first)


def best_so_far(history: Sequence[dict[str, Any]]) -> list[list[float]]:
    """The validations that were better than all before: after how many updates, how good."""
    found: list[list[float]] = []
    for record in history:
        if not found or record["accuracy"] > found[-1][1]:
            found.append([record["updates"], round(record["accuracy"], 6)])
    return found


def at_lengths(task: Problem, answers: Answers, validation: float) -> dict[str, float]:
    """The accuracy of a network that has learned on lengths it was not trained on, by length."""
    if not isinstance(task, AnyLength) or validation < LEARNED:
        return {}
    found = {}
    for share in SHARES:
        length = int(share * task.length)  # type: ignore[attr-defined]
        if not 20 <= length <= MOST_STEPS:
            continue
        other = task.of_length(length)
        count = max(20, min(SEQUENCES, MOST_VALUES // (length * other.inputs)))
        u, t, starts = other.sample_with_starts(count, seed=length)
        found[str(length)] = other.accuracy(answers(u, starts), t)
    return found


def progress_of(folder: Path, key: str) -> int:
    """The last epoch that a run in flight has recorded."""
    path = folder / key / "history.jsonl"
    try:
        with open_file(path) as file:
            file.seek(max(0, path.stat().st_size - 8192), os.SEEK_SET)
            lines = file.read().splitlines()
    except (OSError, InvalidFile):
        return 0
    for line in reversed(lines):
        start = line.find(b'"epoch": ')
        if start >= 0:
            digits = line[start + 9 :].split(b",")[0]
            return int(digits) if digits.isdigit() else 0
    return 0


def remove_checkpoint(folder: Path, key: str) -> None:
    """Remove the files that a finished run no longer needs; its history stays for figures."""
    for name in ("checkpoint.safetensors", "initial.safetensors"):
        try:
            (folder / key / name).unlink(missing_ok=True)
        except OSError as error:
            raise InvalidFile(f"{folder / key / name}: cannot be removed ({error})") from error
