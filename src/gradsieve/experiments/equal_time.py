"""What each arm reaches in the time that plain training takes for all of its updates.

A run's seconds say what else the machine did at the time. So an arm's update is timed anew, in
turns with the plain one on the same minibatches, where its run began and where it was best; and the
history of its runs is read up to the update at which the time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gradsieve.bench.timing import take_turns
from gradsieve.experiments.config import Cell, RunConfig
from gradsieve.experiments.methods import settings_of, stepper_of
from gradsieve.network import SRN
from gradsieve.training.data import Sequences
from gradsieve.training.record import RunFolder

MINIBATCHES, BATCH = 50, 10
TURNS = 3
PLAIN = "off"


@dataclass(frozen=True)
class EqualTime:
    """One arm in one cell, when the time of plain training is over."""

    cell: Cell
    label: str
    cost: float  # of an update; the plain one's is 1
    updates: int  # that fit into the time, of those that were run at most
    accuracies: tuple[float, ...]  # the best on the validation set by then, if any was validated


def equal_times(configs: Sequence[RunConfig], folder: Path) -> list[EqualTime]:
    """Every arm of which this folder has the runs; nothing for a cell without the plain arm's."""
    arms: dict[Cell, dict[str, list[RunConfig]]] = {}
    for config in configs:
        if (folder / config.key / "network.safetensors").is_file():
            arms.setdefault(config.cell, {}).setdefault(config.label, []).append(config)
    found: list[EqualTime] = []
    for cell, runs in arms.items():
        if PLAIN in runs:
            costs = update_costs([own[0] for own in runs.values()], folder)
            found += [_arm(cell, runs[label], cost, folder) for label, cost in costs.items()]
    return found


def update_costs(configs: Sequence[RunConfig], folder: Path) -> dict[str, float]:
    """What an update of each arm costs, as a multiple of the plain one's, by label.

    One configuration an arm, among them the plain one. The cost is the mean of two: a sieve has
    more to do where a run begins than where the gradient reaches back.
    """
    task = configs[0].problem()
    u, t, starts = task.sample_with_starts(MINIBATCHES * BATCH, seed=0)
    data = Sequences(u.transpose(1, 0, 2), t, starts)
    ends = {
        config.label: (
            config.initial_network(),
            SRN.load(folder / config.key / "network.safetensors"),
        )
        for config in configs
    }
    timings = take_turns(
        {
            f"{config.label} {place}": partial(_epoch, config, net, data)
            for config in configs
            for place, net in enumerate(ends[config.label])
        },
        TURNS,
        seconds=0.0,
    )

    def cost(label: str) -> float:
        pairs = [(timings[f"{label} {place}"], timings[f"{PLAIN} {place}"]) for place in (0, 1)]
        return float(np.mean([own.ratio_to(plain).median for own, plain in pairs]))

    return {config.label: cost(config.label) for config in configs}


def _epoch(config: RunConfig, net: SRN, data: Sequences) -> None:
    stepper = stepper_of(config)(net.copy(), settings_of(config))
    for indices in np.arange(MINIBATCHES * BATCH).reshape(MINIBATCHES, BATCH):
        stepper.step(*data.batch(indices))


def _arm(cell: Cell, configs: Sequence[RunConfig], cost: float, folder: Path) -> EqualTime:
    settings = settings_of(configs[0])
    updates = int(settings.epochs * settings.iterations / max(cost, 1.0))
    histories = [RunFolder(folder / config.key).read_history() for config in configs]
    in_time = [
        [record["accuracy"] for record in history if record["updates"] <= updates]
        for history in histories
    ]
    best = tuple(max(accuracies) for accuracies in in_time if accuracies)
    return EqualTime(cell, configs[0].label, cost, updates, best)
