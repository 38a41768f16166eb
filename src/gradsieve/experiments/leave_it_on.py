"""Can the recommended recipe be left on? It, the usual way and the paper's skip, row by row.

A row is a problem of a length and a cell. In the core "the usual way" is the nearest to Adam that
it has, RMS scaling with momentum and clipping, from the spread that PyTorch's start has; around
PyTorch's modules it is Adam itself. Its rate is searched over whole runs, on networks that no table
reports. `recommended` is `gradsieve.recipes.recommended()` as it is, without any search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from gradsieve import recipes
from gradsieve.experiments import leave_it_on_tables as written
from gradsieve.experiments.config import CORE, REPORTED, TASKS, Condition, RunConfig
from gradsieve.experiments.problems import SERIES
from gradsieve.experiments.record import OF_OUR_RECIPE, write_rows
from gradsieve.experiments.search import Arm, Candidates, Settings, each, search_runs
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study, planned
from gradsieve.experiments.ways import EPOCHS, SMALL, SMALL_SIZES
from gradsieve.recipe import Budget, Optimiser, Recipe, Schedule, Sieve, Start

NAME = "leave-it-on"
USUAL, ORTHOGONAL, SKIP = "usual way", "usual way, orthogonal start", "usual way, the paper's skip"
RECOMMENDED = "recommended"
RECOMMENDED_START = "recommended, orthogonal start"  # where it is one of PyTorch's modules
NAMES = (USUAL, ORTHOGONAL, RECOMMENDED, RECOMMENDED_START, SKIP)

HIDDEN = 100
SIZES, FEW_SIZES = (20_000, 1_000, 2_000), (4_000, 500, 1_000)  # few: of 100 inputs
RATES = each(learning_rate=(3e-4, 1e-3, 3e-3))
DATA_EPOCHS, TORCH_EPOCHS = 200, 80  # of 50 updates
TORCH_BATCH, TORCH_HIDDEN = 32, 64
ROUNDS = (2, 5, len(REPORTED))  # networks: every row has two before one has three


@dataclass(frozen=True)
class Row:
    """A line of the table: what is learned, by which cell."""

    condition: Condition
    cell: str = CORE

    @property
    def drawn(self) -> bool:
        """Whether its sequences are drawn, and not a fixed set."""
        return self.condition.task.partition(" ")[0] not in (
            "digits", "mnist", "permuted", "characters", "series",
        )  # fmt: skip

    @property
    def cost(self) -> float:
        """How long its runs take, relative to others."""
        epochs = DATA_EPOCHS if not self.drawn else EPOCHS
        gates = {"nn.RNN": 20, "nn.GRU": 2000, "nn.LSTM": 1000}
        if self.cell != CORE:
            epochs = TORCH_EPOCHS * gates[self.cell]
        return epochs * self.condition.length


@dataclass(frozen=True)
class Way(Arm):
    """An arm whose recipe has its own budget, for one cell."""

    cell: str = CORE

    def run(self, condition: Condition, network: int, epochs: int, found: Settings) -> RunConfig:
        budget = self.recipe.budget
        asked = budget.epochs if epochs >= EPOCHS else min(epochs, budget.epochs)
        sizes = FEW_SIZES if condition.task.startswith("random_permutation") else SIZES
        recipe = self.recipe.replaced(
            epochs=asked,
            sizes=sizes if asked >= min(SMALL, budget.epochs) else SMALL_SIZES,
            validate_every=min(budget.validate_every, asked),
            probe_every=0,
        ).replaced(**found)
        hidden = HIDDEN if self.cell == CORE else TORCH_HIDDEN
        return RunConfig(condition, network, recipe, self.baseline, hidden, self.name, self.cell)


def rows() -> list[Row]:
    """Every row, the cheapest first."""
    found = [
        *(Row(Condition(task, length)) for task in TASKS
          for length in (100, 150, 200, 300, 500, 1000)),
        *(Row(Condition("copy_memory", length)) for length in (100, 500)),
        Row(Condition("memorization", 100)),
        Row(Condition("random_permutation", 100)),
        Row(Condition("digits", 64)),
        Row(Condition("mnist", 196)),
        Row(Condition("mnist", 784)),
        Row(Condition("characters", 100)),
        *(Row(Condition(f"series {name}", length))
          for name, length in zip(SERIES, (24, 84, 251, 361, 427, 1460), strict=True)),
        *(Row(Condition(task, length), cell)
          for task, length in (("digits", 64), ("first_symbol", 150), ("copy_memory", 100))
          for cell in ("nn.RNN", "nn.GRU", "nn.LSTM")),
    ]  # fmt: skip
    return sorted(found, key=lambda row: row.cost)


@cache
def arms_of(row: Row) -> tuple[Way, ...]:
    """The ways that a row compares."""
    search = Candidates(RATES, share=1, longest=100 if row.drawn else None, networks=2)
    if row.cell != CORE:
        search = Candidates(RATES, share=1, networks=2)
        usual = Recipe(
            start=Start("gaussian"),
            optimiser=Optimiser(learning_rate=1e-3, momentum=0.9, rms_decay=0.999, clip=1.0),
            budget=Budget(
                epochs=TORCH_EPOCHS, batch=TORCH_BATCH, validate_every=2,
                stop_at=0.99 if row.drawn else None,
            ),
        )  # fmt: skip
        recommended = usual.replaced(sieve=recipes.recommended().sieve)
    else:
        usual = Recipe(
            start=Start("gaussian", variance=1 / (3 * HIDDEN)),
            optimiser=Optimiser(learning_rate=1e-3, clip=1.0, rms_decay=0.999),
            schedule=Schedule(cool_down=1.0),
            budget=Budget(validate_every=5),
        )
        recommended = recipes.recommended()
        if not row.drawn:
            usual, recommended = (
                recipe.replaced(epochs=DATA_EPOCHS, stop_at=None) for recipe in (usual, recommended)
            )
    plain = Way(USUAL, usual, search, cell=row.cell)
    ways = [
        plain,
        Way(ORTHOGONAL, usual.replaced(start="orthogonal"), search, cell=row.cell),
        Way(RECOMMENDED, recommended, cell=row.cell),
    ]
    if row.cell != CORE:
        ways.append(Way(RECOMMENDED_START, recommended.replaced(start="orthogonal"), cell=row.cell))
    skip = usual.replaced(sieve=Sieve("skip", estimator="frozen"))
    return (*ways, Way(SKIP, skip, plain, cell=row.cell))


def asked_rows(scope: Scope) -> list[Row]:
    """The rows of a scope."""
    return [
        row for row in rows()
        if (not scope.tasks or row.condition.task in scope.tasks)
        and (not scope.lengths or row.condition.length in scope.lengths)
    ]  # fmt: skip


def row_plan(row: Row, scope: Scope, store: Store) -> list[RunConfig]:
    """Searches and networks of one row."""
    return planned(arms_of(row), row.condition, scope, store)


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """Two networks of every row, the cheapest row first; then more networks of every row."""
    found: list[RunConfig] = []
    for networks in (*(some for some in ROUNDS if some < scope.networks), scope.networks):
        for row in asked_rows(scope):
            found += row_plan(row, replace(scope, networks=networks), store)
    return list({run.key: run for run in found}.values())


def write(scope: Scope, store: Store, places: Places) -> None:
    lines = [
        written.Line.of(row.condition, row.cell, arms_of(row), scope, store)
        for row in asked_rows(scope)
    ]
    written.write(NAME, lines, scope.networks, places.output)
    known = store.those_of(all_runs(scope, store))
    write_rows(places.output / f"{NAME}.csv", known, OF_OUR_RECIPE)


def all_runs(scope: Scope, store: Store) -> list[RunConfig]:
    """The plan, and the runs of searches that are finished."""
    searched = (
        run
        for row in asked_rows(scope)
        for way in arms_of(row)
        for _, run in search_runs(way, row.condition, scope.epochs, scope.networks)
    )
    return list({run.key: run for run in (*searched, *plan(scope, store))}.values())


STUDY = Study(
    NAME,
    write,
    plan,
    tuple({way.name: way for row in rows() for way in arms_of(row)}.values()),
    tasks=tuple(dict.fromkeys(row.condition.task for row in rows())),
)
