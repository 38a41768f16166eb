"""On the field's own ground: others' protocols, with the recommended recipe and the usual way.

Each section has the rows of one protocol. Published figures stand beside them (`published`);
where an arm has not been run, the table says so. `length_cost` measures the cost of long sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradsieve import recipes
from gradsieve.experiments import leave_it_on_tables as written
from gradsieve.experiments import length_cost
from gradsieve.experiments.baselines import DeltaVariance
from gradsieve.experiments.config import CORE, TASKS, Condition, RunConfig
from gradsieve.experiments.figures import save
from gradsieve.experiments.generalisation import draw_generalisation
from gradsieve.experiments.leave_it_on import (
    DATA_EPOCHS,
    DATA_RATES,
    HIDDEN,
    RATES,
    USUAL_RECIPE,
    CellArm,
    TableRow,
    around_adam,
    in_the_core,
)
from gradsieve.experiments.protocols import HALVES, MIXED
from gradsieve.experiments.published import ANCHORS
from gradsieve.experiments.record import OF_OUR_RECIPE, write_rows
from gradsieve.experiments.search import Candidates, each
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Rows, Scope, Study, in_rounds, with_searches
from gradsieve.files import write_atomically
from gradsieve.recipe import Recipe
from gradsieve.recipe.optimiser import AUTO
from gradsieve.text import table

NAME = "anchors"
LENGTH_COST = "length as cost"
PENALTY = "usual way, orthogonal start, variance of ‖δ‖"
AUTOCLIP = "usual way, orthogonal start, AutoClip"


@dataclass(frozen=True)
class Ground:
    """One row: where it belongs, and how its arms differ from those of `leave-it-on`.

    Attributes:
        section: the protocol that it is a row of.
        row: the problem and the cell.
        hidden: units, in the core.
        budget: settings of the protocol, such as the minibatch's size.
        longest: the rate is searched at this length where the row's own is longer.
        rivals: whether the penalty on the variance of ‖δ‖ and AutoClip are arms.
    """

    section: str
    row: TableRow
    hidden: int = HIDDEN
    budget: tuple[tuple[str, int], ...] = ()
    longest: int | None = None
    rivals: bool = False

    @property
    def arms(self) -> tuple[CellArm, ...]:
        """The usual way from both starts, the recommended recipe, and the row's rivals."""
        budget = dict(self.budget)
        rates = RATES if self.row.drawn or self.row.cell != CORE else DATA_RATES
        search = Candidates(rates, share=1, longest=self.longest, networks=2)
        if self.row.cell != CORE:
            return around_adam(self.row.cell, search, None, **budget)[:-1]
        own = recipes.recommended() if self.row.drawn else recipes.own_data()
        usual, recommended = (
            recipe.replaced(**budget, **({} if self.row.drawn else {"stop_at": None}))
            for recipe in (USUAL_RECIPE, own)
        )
        arms = in_the_core(usual, recommended, search, self.hidden)[:-1]
        return (*arms, *rivals(usual, self.longest)) if self.rivals else arms


def rivals(usual: Recipe, longest: int | None) -> tuple[CellArm, CellArm]:
    """The usual way from an orthogonal start with the penalty, and with AutoClip; both searched."""
    recipe = usual.replaced(start="orthogonal")

    def searched(**values: tuple[float, ...]) -> Candidates:
        return Candidates(each(**values), share=1, longest=longest, networks=2)

    strengths = searched(weight=(0.01, 0.1, 1.0, 10.0))
    quantiles = searched(clip_quantile=(0.01, 0.1, 0.5, 0.9))
    return (
        CellArm(PENALTY, recipe, strengths, DeltaVariance()),
        CellArm(AUTOCLIP, recipe.replaced(clip=AUTO), quantiles),
    )


def grounds() -> Iterator[Ground]:
    """Every row, section by section."""
    for base in (*TASKS, "memorization", "random_permutation"):
        row = TableRow(Condition(f"{base}, {MIXED}", 200))
        yield Ground("Pascanu et al. (2013)", row, 50, (("batch", 20),))
    for length in (500, 1000, 2000, 5000):
        for task in TASKS:
            yield Ground("Longer", TableRow(Condition(task, length)), longest=100)
    for length in (500, 2000):
        row = TableRow(Condition(HALVES, length))
        yield Ground("coRNN's adding", row, 128, (("batch", 50), ("epochs", 1200)), longest=500)
    row = TableRow(Condition("copy_memory", 1000))
    yield Ground("expRNN's copy memory", row, 190, (("batch", 128), ("epochs", 80)))
    for task in ("mnist", "permuted mnist"):
        yield Ground("Pixels", TableRow(Condition(task, 784)), budget=(("epochs", DATA_EPOCHS),))
        for cell in ("nn.GRU", "nn.LSTM"):
            yield Ground("Pixels", TableRow(Condition(task, 784), cell))
    for task in ("temporal_order", "adding"):
        for length in (100, 200):
            row = TableRow(Condition(task, length))
            yield Ground("Rivals", row, longest=100, rivals=True)


def asked(scope: Scope) -> list[Ground]:
    """The rows of a scope, the cheapest first."""
    found = (ground for ground in grounds() if scope.has(ground.row.condition))
    return sorted(found, key=lambda ground: ground.row.cost * dict(ground.budget).get("batch", 10))


def compared(scope: Scope) -> Rows:
    """The arms of each row."""
    return [(ground.arms, ground.row.condition) for ground in asked(scope)]


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """One network of every row before a second of any."""
    if scope.arms == (LENGTH_COST,):
        return []
    rounds = sorted({1, min(3, scope.networks), scope.networks})
    return in_rounds(compared(scope), rounds, scope, store)


def write(scope: Scope, store: Store, places: Places) -> None:
    sections: dict[str, list[written.Line]] = {}
    for ground in sorted(asked(scope), key=lambda one: one.section):
        line = written.Line.of(ground.row.condition, ground.row.cell, ground.arms, scope, store)
        sections.setdefault(ground.section, []).append(line)
    text = f"# {NAME}\n\nA dash is what is not run. {written.EXPLAINED}\n"
    for section, lines in sections.items():
        known = [one for one in ANCHORS if one.section == section]
        told = [[one.what, one.figure, one.source] for one in known]
        text += f"\n## {section}\n\n" + written.full_table(lines, scope.networks)
        if told:
            text += "\nPublished, quoted and not measured here:\n\n"
            text += table(["what", "figure", "source"], told)
    write_atomically(places.output / f"{NAME}.md", text)
    runs = with_searches(compared(scope), plan(scope, store), scope)
    known_rows = store.those_of(runs)
    write_rows(places.output / f"{NAME}.csv", known_rows, OF_OUR_RECIPE)
    learned = [row for _, row in known_rows if row["at_length"]]
    if learned:
        save(draw_generalisation(learned), places.output / "generalisation.png")
    if not scope.arms or LENGTH_COST in scope.arms:
        length_cost.write(places)


STUDY = Study(
    NAME,
    write,
    plan,
    tuple({arm.name: arm for ground in grounds() for arm in ground.arms}.values()),
    parts=(LENGTH_COST,),
    tasks=tuple(dict.fromkeys(ground.row.condition.task for ground in grounds())),
)
