"""What a study is: which runs it needs, given what is known so far, and how large it shall be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradsieve.experiments import search
from gradsieve.experiments.config import REPORTED, TASKS, Cell, Options, RunConfig, label_of
from gradsieve.experiments.store import Store


@dataclass(frozen=True)
class Scope:
    """How much of a study: the whole by default."""

    tasks: tuple[str, ...] = TASKS
    lengths: tuple[int, ...] = (100, 150)
    networks: int = len(REPORTED)
    epochs: int = 2000
    arms: tuple[str, ...] = ()  # only these labels; all of the study's by default

    def cells(self) -> list[Cell]:
        """Every task at one length before the next length."""
        return [Cell(task, length) for length in sorted(self.lengths) for task in self.tasks]


Plan = Callable[[Scope, Store], list[RunConfig]]


@dataclass(frozen=True)
class Arm:
    """One way to train, in every cell of a study."""

    method: str
    clipped: bool = False
    options: Options = ()  # what it is built on besides: one of `search.BUILT_ON`

    @property
    def family(self) -> search.Family:
        return search.family_of(self.method, self.clipped, self.options)

    @property
    def label(self) -> str:
        return label_of(self.method, self.options, self.clipped)


def cell_configs(arms: tuple[Arm, ...], cell: Cell, scope: Scope, store: Store) -> list[RunConfig]:
    """The runs of one cell: the searches that are not finished, and every arm that needs none."""
    wanted = [arm for arm in arms if not scope.arms or arm.label in scope.arms]
    needed: list[RunConfig] = []
    choices = {}
    for family in dict.fromkeys(arm.family for arm in wanted):
        choice = search.choose(store, cell, family, scope.epochs, scope.networks)
        if choice is None:
            needed += search.configs(cell, family, scope.epochs, scope.networks)
        else:
            choices[family] = choice
    return needed + [
        RunConfig(
            cell.task,
            cell.length,
            arm.method,
            network,
            choices[arm.family].learning_rate,
            choices[arm.family].clip,
            epochs=scope.epochs,
            variance=cell.variance,
            options=choices[arm.family].options,
        )
        for network in range(scope.networks)  # so that a study cut short compares the same networks
        for arm in wanted
        if arm.family in choices
    ]
