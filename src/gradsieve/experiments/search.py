"""Rates, clipping thresholds and initial gains, searched on networks that no table reports.

Three families: what is not clipped (`off`, and the paper's skip, which uses the same rate), what is
(`clip`, and every method that is built on it), and `hold`, which has one rate and threshold
everywhere, and the gain of the initial recurrent weights to choose. None has a larger budget than
clipping. A search run is a third as long as a reported one. The best mean validation accuracy wins;
of equals, the lowest validation loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gradsieve.experiments.config import Cell, Options, RunConfig
from gradsieve.experiments.store import Store

NETWORKS = (1000, 1001, 1002)
SHARE = 3  # a search run has this part of the reported runs' epochs

Family = Literal["not clipped", "clipped", "hold"]


@dataclass(frozen=True)
class Choice:
    """The settings that a family uses on a task of a length."""

    learning_rate: float
    clip: float | None
    options: Options = ()

    def __str__(self) -> str:
        values = [self.learning_rate, *(() if self.clip is None else (self.clip,))]
        named = [f"{name} {value:g}" for name, value in self.options]
        return ", ".join([f"{value:g}" for value in values] + named)


TRIED: dict[Family, tuple[Choice, ...]] = {
    "not clipped": tuple(Choice(rate, None) for rate in (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),  # paper's
    "clipped": tuple(Choice(1e-3, clip) for clip in (0.1, 0.3, 0.5, 1.0, 3.0)),  # product: the step
    "hold": tuple(Choice(1e-3, 1.0, (("gain", gain),)) for gain in (0.7, 1.0)),
}


def family_of(method: str, clipped: bool) -> Family:
    """Which search a method takes its settings from."""
    if method in ("hold", "start"):
        return "hold"
    return "clipped" if clipped else "not clipped"


def configs(cell: Cell, family: Family, epochs: int, networks: int) -> list[RunConfig]:
    """The search runs of one family; a small study searches on few networks too."""
    return [
        RunConfig(
            cell.task, cell.length, "hold" if family == "hold" else "off", network,
            choice.learning_rate, choice.clip, epochs=max(1, epochs // SHARE),
            variance=cell.variance, options=choice.options,
        )
        for network in NETWORKS[:networks]
        for choice in TRIED[family]
    ]  # fmt: skip


def choose(store: Store, cell: Cell, family: Family, epochs: int, networks: int) -> Choice | None:
    """What the finished search says; None while a run of it is missing."""
    scores: dict[Choice, list[tuple[float, float]]] = {}
    for config in configs(cell, family, epochs, networks):
        row = store.get(config)
        if row is None:
            return None
        choice = Choice(config.learning_rate, config.clip, config.options)
        score = (row["validation_accuracy"], -row["validation_loss"])
        scores.setdefault(choice, []).append(score)
    return max(scores, key=lambda choice: _mean_score(scores[choice]))


def _mean_score(scores: list[tuple[float, float]]) -> tuple[float, float]:
    accuracies, losses = zip(*scores, strict=True)
    return sum(accuracies) / len(scores), sum(losses) / len(scores)
