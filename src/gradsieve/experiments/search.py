"""Learning rates and clipping thresholds, searched on networks that no table reports.

Two families, each with the same budget of runs: what is not clipped (`off`, and the paper's skip,
which uses the same rate), and what is (`clip`, and every method that is built on it). A search run
is a third as long as a reported one. The best mean validation accuracy wins; of equals, the lowest
validation loss.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradsieve.experiments.config import Cell, RunConfig
from gradsieve.experiments.store import Store

NETWORKS = (1000, 1001, 1002)
SHARE = 3  # a search run has this part of the reported runs' epochs
UNCLIPPED = tuple((rate, None) for rate in (1e-5, 3e-5, 1e-4, 3e-4, 1e-3))  # the paper's range
CLIPPED = tuple((1e-3, clip) for clip in (0.1, 0.3, 0.5, 1.0, 3.0))  # their product is the step


@dataclass(frozen=True)
class Choice:
    """The rate and threshold that a family uses on a task of a length."""

    learning_rate: float
    clip: float | None


def configs(cell: Cell, clipped: bool, epochs: int, networks: int) -> list[RunConfig]:
    """The search runs of one family; a small study searches on few networks too."""
    return [
        RunConfig(
            cell.task, cell.length, "off", network, rate, clip,
            epochs=max(1, epochs // SHARE), variance=cell.variance,
        )
        for network in NETWORKS[:networks]
        for rate, clip in (CLIPPED if clipped else UNCLIPPED)
    ]  # fmt: skip


def choose(store: Store, cell: Cell, clipped: bool, epochs: int, networks: int) -> Choice | None:
    """What the finished search says; None while a run of it is missing."""
    scores: dict[Choice, list[tuple[float, float]]] = {}
    for config in configs(cell, clipped, epochs, networks):
        row = store.get(config)
        if row is None:
            return None
        choice = Choice(config.learning_rate, config.clip)
        score = (row["validation_accuracy"], -row["validation_loss"])
        scores.setdefault(choice, []).append(score)
    return max(scores, key=lambda choice: _mean_score(scores[choice]))


def _mean_score(scores: list[tuple[float, float]]) -> tuple[float, float]:
    accuracies, losses = zip(*scores, strict=True)
    return sum(accuracies) / len(scores), sum(losses) / len(scores)
