"""The accuracy of each arm in the time that plain training takes for all of its updates.

The seconds of a run depend on the machine's other work. So an arm's update is timed anew, in turns
with the plain one on the same minibatches, at the start of its run and at its best network. The
history of its runs is then read up to the update at which the time is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gradsieve.bench.timing import take_turns
from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.network import SRN
from gradsieve.training import Stacked, Stepper
from gradsieve.training.record import RunFolder

MINIBATCHES, BATCH = 50, 10
TURNS = 3
PLAIN = "SGD"


@dataclass(frozen=True)
class EqualTime:
    """One arm in one condition, when the time of plain training is over."""

    condition: Condition
    name: str
    cost: float  # of an update; the plain one's is 1
    updates: int  # that fit into the time, of those that were run at most
    accuracies: tuple[float, ...]  # the best on the validation set by then, if any was validated


def equal_times(configs: Sequence[RunConfig], folder: Path) -> list[EqualTime]:
    """Every arm whose runs this folder has, in each condition that has the plain arm's."""
    arms: dict[Condition, dict[str, list[RunConfig]]] = {}
    for config in configs:
        if (folder / config.key / "network.safetensors").is_file():
            arms.setdefault(config.condition, {}).setdefault(config.arm, []).append(config)
    found: list[EqualTime] = []
    for place, runs in arms.items():
        if PLAIN in runs:
            costs = update_costs([own[0] for own in runs.values()], folder)
            found += [_arm(place, runs[name], cost, folder) for name, cost in costs.items()]
    return found


def update_costs(configs: Sequence[RunConfig], folder: Path) -> dict[str, float]:
    """The cost of an update of each arm, in multiples of the plain one's.

    One configuration an arm, among them the plain one. The cost is the mean of two: a sieve has
    more to do where a run begins than where the gradient reaches back.
    """
    task = configs[0].condition.problem()
    u, t, starts = task.sample_with_starts(MINIBATCHES * BATCH, seed=0)
    data = Stacked(u.transpose(1, 0, 2), t, starts)
    ends = {
        config.arm: (
            config.initial_network(),
            SRN.load(folder / config.key / "network.safetensors"),
        )
        for config in configs
    }
    timings = take_turns(
        {
            f"{config.arm} {place}": partial(_epoch, config, net, data)
            for config in configs
            for place, net in enumerate(ends[config.arm])
        },
        TURNS,
        seconds=0.0,
    )

    def cost(name: str) -> float:
        pairs = [(timings[f"{name} {place}"], timings[f"{PLAIN} {place}"]) for place in (0, 1)]
        return float(np.mean([own.ratio_to(plain) for own, plain in pairs]))

    return {config.arm: cost(config.arm) for config in configs}


def _epoch(config: RunConfig, net: SRN, data: Stacked) -> None:
    stepper = Stepper(net.copy(), config.recipe, extension=config.extension())
    for indices in np.arange(MINIBATCHES * BATCH).reshape(MINIBATCHES, BATCH):
        stepper.step(*data.batch(indices))


def _arm(place: Condition, configs: Sequence[RunConfig], cost: float, folder: Path) -> EqualTime:
    budget = configs[0].recipe.budget
    updates = int(budget.epochs * budget.iterations / max(cost, 1.0))
    histories = [RunFolder(folder / config.key).read_history() for config in configs]
    in_time = [
        [record["accuracy"] for record in history if record["updates"] <= updates]
        for history in histories
    ]
    best = tuple(max(accuracies) for accuracies in in_time if accuracies)
    return EqualTime(place, configs[0].arm, cost, updates, best)
