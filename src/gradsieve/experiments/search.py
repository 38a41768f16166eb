"""Settings that are searched: tried on networks that no table reports, and then taken over.

An arm's search has no larger budget than its opponent's. A search run has a third
of the epochs of a reported one, or all of them where a third ranks nothing. The best mean
validation accuracy wins; of equals, the fewest updates, and then the lowest validation loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

from gradsieve.experiments.baselines import Baseline
from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.experiments.store import Store
from gradsieve.experiments.ways import budgeted
from gradsieve.recipe import Recipe

NETWORKS = (1000, 1001, 1002)
MARGIN = 0.02  # a smaller difference of mean accuracies says nothing
BEST_OF_MANY = 0.05  # by how much the best validation of a run that only guesses exceeds the guess
Settings = Mapping[str, Any]


def each(**values: Iterable[Any]) -> tuple[Settings, ...]:
    """Every combination of these settings.

    >>> each(clip=(0.5, 1.0))
    ({'clip': 0.5}, {'clip': 1.0})
    """
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


@dataclass(frozen=True)
class Candidates:
    """Which settings of an arm are tried.

    Attributes:
        tried: the settings of each candidate.
        share: a search run has this part of the reported runs' epochs: 3 is a third.
        longest: at a longer T the settings are taken over that were found at this length.
        shrinks: whether the threshold taken over is smaller there, `clip · longest / T`, because
            the effects of a step on every state add up over time.
        networks: how many of `NETWORKS` each candidate is tried on.
    """

    tried: tuple[Settings, ...]
    share: int = 3
    longest: int | None = None
    shrinks: bool = False
    networks: int = len(NETWORKS)


@dataclass(frozen=True)
class Arm:
    """One way to train, in every condition of a study.

    Attributes:
        name: its name in tables.
        recipe: how it trains, without the budget and the searched settings.
        searched: its own search, or the arm whose search it takes its settings from.
        baseline: its addition to the recipe.
        beside: name of the arm that differs from this one by its sieve alone.
    """

    name: str
    recipe: Recipe
    searched: Candidates | Arm | None = None
    baseline: Baseline | None = None
    beside: str = ""

    @property
    def leader(self) -> Arm:
        """The arm whose search decides this one's settings."""
        return self.searched.leader if isinstance(self.searched, Arm) else self

    def run(self, condition: Condition, network: int, epochs: int, found: Settings) -> RunConfig:
        """A run of this arm with the settings that were found."""
        recipe = budgeted(self.recipe, epochs)
        return RunConfig(condition, network, recipe, self.baseline, arm=self.name).replaced(**found)


@dataclass(frozen=True)
class Found:
    """A finished search: each candidate's mean validation accuracy, and the settings to use."""

    accuracies: tuple[tuple[Settings, float], ...]
    settings: Settings
    guess: float = 0.0  # the score of a constant guess

    @property
    def by_chance(self) -> bool:
        """Whether the candidates could not be told apart, and none had left the guess."""
        values = [accuracy for _, accuracy in self.accuracies]
        if len(values) < 2 or max(values) >= self.guess + BEST_OF_MANY:
            return False
        return max(values) - min(values) < MARGIN


def search_runs(
    arm: Arm, condition: Condition, epochs: int, networks: int
) -> list[tuple[Settings, RunConfig]]:
    """The candidates of an arm's search with their runs; a small study has few networks too."""
    search = arm.leader.searched
    if not isinstance(search, Candidates):
        return []
    length = min(condition.length, search.longest or condition.length)
    where = Condition(condition.task, length, condition.convention)
    part = max(1, epochs // search.share)
    return [
        (tried, arm.leader.run(where, network, part, tried))
        for network in NETWORKS[: min(networks, search.networks)]
        for tried in search.tried
    ]


def finished(
    store: Store, arm: Arm, condition: Condition, epochs: int, networks: int
) -> Found | None:
    """The result of an arm's search; None while one of its runs is missing."""
    search = arm.leader.searched
    if not isinstance(search, Candidates):
        return Found((), {})
    rows: list[list[dict[str, Any]]] = [[] for _ in search.tried]
    for tried, run in search_runs(arm, condition, epochs, networks):
        row = store.get(run)
        if row is None:
            return None
        rows[search.tried.index(tried)].append(row)
    best = max(range(len(rows)), key=lambda place: _score(rows[place]))
    settings = dict(search.tried[best])
    if search.shrinks and search.longest and condition.length > search.longest:
        settings["clip"] *= search.longest / condition.length
    means = (fmean(row["validation_accuracy"] for row in own) for own in rows)
    guess = condition.problem().constant_guess
    return Found(tuple(zip(search.tried, means, strict=True)), settings, guess)


def _score(rows: list[dict[str, Any]]) -> tuple[float, float, float]:
    """The better, the larger."""
    return (
        fmean(row["validation_accuracy"] for row in rows),
        -fmean(row["updates"] for row in rows),
        -fmean(row["validation_loss"] for row in rows),
    )
