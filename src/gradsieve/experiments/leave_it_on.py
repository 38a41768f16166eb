"""Can the recommended recipe be left on? It, the usual way and the paper's skip, row by row.

A row is a problem of a length and a cell. In the core "the usual way" is the nearest to Adam that
it has, RMS scaling with momentum and clipping, from the spread that PyTorch's start has; around
PyTorch's modules it is Adam itself. Its rate is searched over whole runs, on networks that no table
reports. `recommended` is `gradsieve.recipes.recommended()` as it is, without any search; on data
sets it is `gradsieve.recipes.own_data()`, which lacks the parts that only drawn tasks allow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from gradsieve import recipes
from gradsieve.experiments import leave_it_on_tables as written
from gradsieve.experiments import verdicts
from gradsieve.experiments.config import CORE, REPORTED, TASKS, Condition, RunConfig
from gradsieve.experiments.problems import SERIES
from gradsieve.experiments.record import OF_OUR_RECIPE, write_rows
from gradsieve.experiments.search import Arm, Candidates, Settings, each
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Rows, Scope, Study, in_rounds, with_searches
from gradsieve.experiments.ways import EPOCHS, SMALL, SMALL_SIZES
from gradsieve.recipe import Budget, Optimiser, Recipe, Schedule, Sieve, Start

NAME = "leave-it-on"
USUAL, ORTHOGONAL, SKIP = "usual way", "usual way, orthogonal start", "usual way, the paper's skip"
RECOMMENDED = "recommended"
RECOMMENDED_START = "recommended, orthogonal start"  # where it is one of PyTorch's modules
NAMES = (USUAL, ORTHOGONAL, RECOMMENDED, RECOMMENDED_START, SKIP)

HIDDEN = 100
SIZES, FEW_SIZES = (20_000, 1_000, 2_000), (4_000, 500, 1_000)
RATES = each(learning_rate=(3e-4, 1e-3, 3e-3))
DATA_RATES = each(learning_rate=(1e-3, 3e-3, 1e-2, 3e-2))  # of the core, on data sets
DATA_EPOCHS, TORCH_EPOCHS = 200, 80  # of 50 updates
TORCH_BATCH, TORCH_HIDDEN = 32, 64
ROUNDS = (2, 5, len(REPORTED))  # networks: every row has two before one has three


@dataclass(frozen=True)
class TableRow:
    """A line of the table: a problem and the cell that learns it."""

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
class CellArm(Arm):
    """An arm whose recipe has its own budget, for one cell of `hidden` units."""

    cell: str = CORE
    hidden: int = HIDDEN

    def run(self, condition: Condition, network: int, epochs: int, found: Settings) -> RunConfig:
        budget = self.recipe.budget
        asked = budget.epochs if epochs >= EPOCHS else min(epochs, budget.epochs)
        recipe = self.recipe.replaced(
            epochs=asked,
            sizes=sizes_of(condition) if asked >= min(SMALL, budget.epochs) else SMALL_SIZES,
            validate_every=min(budget.validate_every, asked),
            probe_every=0,
        )
        return RunConfig(
            condition, network, recipe, self.baseline, self.hidden, self.name, self.cell
        ).replaced(**found)


def sizes_of(condition: Condition) -> tuple[int, int, int]:
    """Sequences that are drawn: fewer where one of them is large."""
    many_inputs = condition.task.startswith("random_permutation")
    return FEW_SIZES if many_inputs or condition.length > 1000 else SIZES


def rows() -> list[TableRow]:
    """Every row, the cheapest first."""
    found = [
        *(TableRow(Condition(task, length)) for task in TASKS
          for length in (100, 150, 200, 300, 500, 1000)),
        *(TableRow(Condition("copy_memory", length)) for length in (100, 500)),
        TableRow(Condition("memorization", 100)),
        TableRow(Condition("random_permutation", 100)),
        TableRow(Condition("digits", 64)),
        TableRow(Condition("mnist", 196)),
        TableRow(Condition("mnist", 784)),
        TableRow(Condition("characters", 100)),
        *(TableRow(Condition(f"series {name}", length))
          for name, length in zip(SERIES, (24, 84, 251, 361, 427, 1460), strict=True)),
        *(TableRow(Condition(task, length), cell)
          for task, length in (("digits", 64), ("first_symbol", 150), ("copy_memory", 100))
          for cell in ("nn.RNN", "nn.GRU", "nn.LSTM")),
    ]  # fmt: skip
    return sorted(found, key=lambda row: row.cost)


@cache
def arms_of(row: TableRow) -> tuple[CellArm, ...]:
    """The ways that a row compares."""
    search = Candidates(RATES, share=1, longest=100 if row.drawn else None, networks=2)
    if row.cell != CORE:
        stop_at = 0.99 if row.drawn else None
        return around_adam(row.cell, replace(search, longest=None), stop_at)
    usual, recommended = USUAL_RECIPE, recipes.recommended()
    if not row.drawn:
        search = replace(search, tried=DATA_RATES)
        usual, recommended = (
            recipe.replaced(epochs=DATA_EPOCHS, stop_at=None)
            for recipe in (usual, recipes.own_data())
        )
    return in_the_core(usual, recommended, search)


USUAL_RECIPE = Recipe(
    start=Start("gaussian", variance=1 / (3 * HIDDEN)),
    optimiser=Optimiser(learning_rate=1e-3, clip=1.0, rms_decay=0.999),
    schedule=Schedule(cool_down=1.0),
    budget=Budget(validate_every=5),
)


def in_the_core(
    usual: Recipe, recommended: Recipe, search: Candidates, hidden: int = HIDDEN
) -> tuple[CellArm, ...]:
    """The four arms of tanh units."""
    plain = CellArm(USUAL, usual, search, hidden=hidden)
    skip = usual.replaced(sieve=Sieve("skip", estimator="frozen"))
    return (
        plain,
        CellArm(ORTHOGONAL, usual.replaced(start="orthogonal"), search, hidden=hidden),
        CellArm(RECOMMENDED, recommended, hidden=hidden),
        CellArm(SKIP, skip, plain, hidden=hidden),
    )


def around_adam(
    cell: str, search: Candidates, stop_at: float | None, **budget: Any
) -> tuple[CellArm, ...]:
    """The five arms of a module of PyTorch."""
    usual = Recipe(
        start=Start("gaussian"),
        optimiser=Optimiser(learning_rate=1e-3, momentum=0.9, rms_decay=0.999, clip=1.0),
        budget=Budget(
            **{"epochs": TORCH_EPOCHS, "batch": TORCH_BATCH, "validate_every": 2, **budget},
            stop_at=stop_at,
        ),
    )
    sieve = usual.replaced(sieve=recipes.recommended().sieve)
    skip = usual.replaced(sieve=Sieve("skip", estimator="frozen"))

    def arm(name: str, recipe: Recipe, searched: Candidates | Arm | None = None) -> CellArm:
        return CellArm(name, recipe, searched, cell=cell, hidden=TORCH_HIDDEN)

    plain = arm(USUAL, usual, search)
    return (
        plain,
        arm(ORTHOGONAL, usual.replaced(start="orthogonal"), search),
        arm(RECOMMENDED, sieve),
        arm(RECOMMENDED_START, sieve.replaced(start="orthogonal")),
        arm(SKIP, skip, plain),
    )


def asked(scope: Scope) -> list[TableRow]:
    """The rows of a scope."""
    return [row for row in rows() if scope.has(row.condition)]


def compared(scope: Scope) -> Rows:
    """The arms of each row."""
    return [(arms_of(row), row.condition) for row in asked(scope)]


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """Two networks of every row, the cheapest row first; then more networks of every row."""
    rounds = (*(some for some in ROUNDS if some < scope.networks), scope.networks)
    return in_rounds(compared(scope), rounds, scope, store)


def write(scope: Scope, store: Store, places: Places) -> None:
    lines = [
        written.Line.of(row.condition, row.cell, arms_of(row), scope, store) for row in asked(scope)
    ]
    written.write(NAME, lines, scope.networks, places.output)
    known = store.those_of(all_runs(scope, store))
    write_rows(places.output / f"{NAME}.csv", known, OF_OUR_RECIPE)
    verdicts.write(NAME, known, places.output)


def all_runs(scope: Scope, store: Store) -> list[RunConfig]:
    """The plan, and the runs of searches that are finished."""
    return with_searches(compared(scope), plan(scope, store), scope)


STUDY = Study(
    NAME,
    write,
    plan,
    tuple({way.name: way for row in rows() for way in arms_of(row)}.values()),
    tasks=tuple(dict.fromkeys(row.condition.task for row in rows())),
)
