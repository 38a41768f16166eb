"""A study: the runs that it needs, given the rows so far, and its output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gradsieve.experiments.config import REPORTED, TASKS, Condition, RunConfig
from gradsieve.experiments.search import Arm, finished, search_runs
from gradsieve.experiments.store import Store
from gradsieve.experiments.ways import EPOCHS

LENGTHS = (100, 150)


@dataclass(frozen=True)
class Scope:
    """The part of a study that is asked for; by default the whole."""

    tasks: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    networks: int = len(REPORTED)
    epochs: int = EPOCHS
    arms: tuple[str, ...] = ()

    def conditions(
        self, tasks: Sequence[str] = TASKS, lengths: Sequence[int] = LENGTHS
    ) -> list[Condition]:
        """The conditions asked for, or the study's own: all tasks at one length, then the next."""
        return [
            Condition(task, length)
            for length in sorted(self.lengths or lengths)
            for task in self.tasks or tasks
        ]

    def has(self, condition: Condition) -> bool:
        """Whether it asks for this task and length."""
        return (not self.tasks or condition.task in self.tasks) and (
            not self.lengths or condition.length in self.lengths
        )


@dataclass(frozen=True)
class Places:
    """Where a study works: its runs' folders, where it writes, and on how many cores."""

    folder: Path
    output: Path
    jobs: int = 1


Plan = Callable[[Scope, Store], list[RunConfig]]
Write = Callable[[Scope, Store, Places], None]


def nothing(scope: Scope, store: Store) -> list[RunConfig]:
    """The plan of a study that computes as it writes."""
    return []


@dataclass(frozen=True)
class Study:
    """One study, as `gradsieve reproduce` knows it."""

    name: str
    write: Write
    plan: Plan = nothing
    arms: tuple[Arm, ...] = ()
    parts: tuple[str, ...] = ()  # names beside the arms that can be asked for
    tasks: tuple[str, ...] = TASKS

    @property
    def names(self) -> tuple[str, ...]:
        """The names that `--arms` may have for this study."""
        return (*(arm.name for arm in self.arms), *self.parts)


def planned(
    arms: Sequence[Arm], condition: Condition, scope: Scope, store: Store
) -> list[RunConfig]:
    """The runs of one condition: unfinished searches, then each arm whose search is finished.

    Network by network, so that a study cut short compares arms on the same networks.
    """
    wanted = [arm for arm in arms if not scope.arms or arm.name in scope.arms]
    needed: list[RunConfig] = []
    found = {}
    for leader in {arm.leader.name: arm.leader for arm in wanted}.values():
        result = finished(store, leader, condition, scope.epochs, scope.networks)
        if result is None:
            runs = search_runs(leader, condition, scope.epochs, scope.networks)
            needed += [run for _, run in runs]
        else:
            found[leader.name] = result.settings
    return needed + [
        arm.run(condition, network, scope.epochs, found[arm.leader.name])
        for network in range(scope.networks)
        for arm in wanted
        if arm.leader.name in found
    ]


Rows = Sequence[tuple[Sequence[Arm], Condition]]  # of a table: the arms that each compares


def in_rounds(rows: Rows, rounds: Iterable[int], scope: Scope, store: Store) -> list[RunConfig]:
    """The runs of every row with the first number of networks, then with the next number."""
    runs = (
        run
        for networks in rounds
        for arms, condition in rows
        for run in planned(arms, condition, replace(scope, networks=networks), store)
    )
    return list({run.key: run for run in runs}.values())


def with_searches(rows: Rows, runs: Sequence[RunConfig], scope: Scope) -> list[RunConfig]:
    """These runs and those of all searches, finished ones too."""
    searched = (
        run
        for arms, condition in rows
        for arm in arms
        for _, run in search_runs(arm, condition, scope.epochs, scope.networks)
    )
    return list({run.key: run for run in (*searched, *runs)}.values())


def reported(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """The runs of a plan that a table shows; the others belong to a search."""
    return [config for config in configs if config.network in REPORTED]
