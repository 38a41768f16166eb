"""One run of a study, from its configuration to its row. Runs in a worker process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve.errors import InvalidFile
from gradsieve.experiments.config import RunConfig
from gradsieve.files import open_file
from gradsieve.flow import predict
from gradsieve.training.data import draw
from gradsieve.training.run import run_one

TOLERANCES = (0.04, 0.08)  # both are reported for the regression tasks, whatever the task's own is


def execute(config_json: str, folder: str) -> dict[str, Any]:
    """Train the run's network, going on from its folder, and give its row."""
    config = RunConfig.from_json(config_json)
    net, job = config.initial_network(), config.job()
    run = run_one(net, job, Path(folder) / config.key)
    if run.stopped == "interrupted":
        raise KeyboardInterrupt
    row = {
        "task": config.condition.task,
        "length": config.condition.length,
        "sieve": config.arm,
        "seed": config.network,
        **run.result(),
        "learning_rate": config.recipe.optimiser.learning_rate,
        "clip": config.recipe.optimiser.clip,
        "final_Q": run.history[-1]["Q"],
    }
    if job.task.output == "linear":
        test = draw(job.task, net, config.recipe.budget.sizes, job.seed).test
        u, t, starts = test.batch(slice(None))
        error = np.abs(predict(run.network, u, job.engine, starts) - t).max(axis=1)
        row |= {
            f"within_{tolerance}": float((error <= tolerance).mean()) for tolerance in TOLERANCES
        }
    return row


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
    """What a finished run no longer needs; its history stays for the figures."""
    for name in ("checkpoint.safetensors", "initial.safetensors"):
        try:
            (folder / key / name).unlink(missing_ok=True)
        except OSError as error:
            raise InvalidFile(f"{folder / key / name}: cannot be removed ({error})") from error
