"""Beyond the paper: the policy "hold" against clipping, on longer and longer sequences.

With and without RMSprop's scaling, from several starts, with and without a curriculum, so that the
worth of each shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from gradsieve import tasks
from gradsieve.experiments import figures, tables, ways
from gradsieve.experiments.accuracies import against, write_accuracies
from gradsieve.experiments.config import TASKS, Condition, RunConfig
from gradsieve.experiments.search import Arm, Candidates, each
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study, planned, reported
from gradsieve.experiments.table1 import CLIPPING
from gradsieve.experiments.table1 import plan as table1_plan
from gradsieve.files import write_atomically
from gradsieve.recipe import Recipe

LENGTHS = (100, 150, 200, 300)
WIDELY, NEAR, COARSELY = (0.1, 0.3, 1.0, 3.0, 10.0), (0.3, 1.0, 2.0), (1.0, 2.0)
HOLD = ", hold"


def pair(
    name: str, recipe: Recipe, plain: Candidates, with_hold: Candidates, highest: float = 0.5
) -> tuple[Arm, Arm]:
    """A way of training without and with "hold", each with a search of its own."""
    held = ways.held(recipe, highest)
    return Arm(name, recipe, plain), Arm(f"{name}{HOLD}", held, with_hold, beside=name)


def thresholds(*clips: float, **how: int | bool) -> Candidates:
    return Candidates(each(clip=clips), **how)  # type: ignore[arg-type]


HELD = Arm(
    f"clipping{HOLD}", ways.held(ways.CLIPPED), Candidates(each(gain=(0.7, 1.0))), beside="clipping"
)
GAIN = Arm("clipping, the gain of hold", ways.CLIPPED, HELD)
SCALED = pair("RMSprop + clipping", ways.SCALED, thresholds(*WIDELY), thresholds(*NEAR))
ORTHOGONAL = pair("orthogonal start", ways.ORTHOGONAL, thresholds(*WIDELY), thresholds(*NEAR))
WHOLE = thresholds(*COARSELY, share=1, longest=100)
SHRINKING = thresholds(*COARSELY, share=1, longest=100, shrinks=True)
ARMS = (
    CLIPPING,
    GAIN,
    HELD,
    *SCALED,
    *pair("identity start", ways.IDENTITY, thresholds(*WIDELY), thresholds(*NEAR)),
    *ORTHOGONAL,
    *pair("curriculum", ways.CURRICULUM, thresholds(*WIDELY), thresholds(*NEAR)),
    *pair("curriculum, large input weights", ways.LARGE_INPUT,
          thresholds(0.3, 1.0, 3.0, 10.0, 30.0), thresholds(1.0, 3.0, 10.0)),
    *pair("fine curriculum", ways.FINE_CURRICULUM,
          thresholds(0.1, 0.3, 0.7, 1.4, 2.0), thresholds(0.7, 1.4, 2.0)),
    *pair("fine curriculum, larger minibatches", ways.LARGER_MINIBATCHES, WHOLE, WHOLE, 1.5),
    *pair("fine curriculum, identity start", ways.FINE_IDENTITY, SHRINKING, SHRINKING, 1.0),
)  # fmt: skip
# The arm that suits the policy best, by task: the same at every length.
ADVISED = {
    "temporal_order": "identity start",
    "temporal_order_3bit": "identity start",
    "adding": "curriculum",
    "multiplication": "fine curriculum, identity start",
}


def summarised(task: str) -> dict[str, str]:
    """The arms of a task's summary: their headings there, and their names."""
    advised = ADVISED[task]
    return {
        "SGD": "SGD",
        "the paper's skip": "skip (Lemma 1)",
        "clipping": "clipping",
        "RMSprop + clipping": SCALED[0].name,
        "RMSprop + clipping, hold": SCALED[1].name,
        "advised": advised,
        "advised, hold": f"{advised}{HOLD}",
    }


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    return [
        config
        for place in scope.conditions(lengths=LENGTHS)
        for config in planned(ARMS, place, scope, store)
        # With a gain of 1 it is clipping.
        if config.arm != GAIN.name or config.recipe.start.gain != 1
    ]


def write(scope: Scope, store: Store, places: Places) -> None:
    pairs = {arm.name: arm.beside for arm in ARMS if arm.beside}
    opponents = against(CLIPPING) | {"the same without hold": pairs.get}
    found = write_accuracies(STUDY, scope, store, places.output, opponents)
    write_atomically(places.output / "hold.md", tables.hold_table(found, pairs, CLIPPING.name))
    write_summary(found, table1_plan(scope, store), store, places)


def write_summary(
    found: Mapping[Condition, tables.Arms],
    papers: Sequence[RunConfig],
    store: Store,
    places: Places,
) -> None:
    """Write the means of the arms beyond the paper beside those of the paper's own."""
    own = tables.by_condition(reported(papers), store)
    both = {place: own.get(place, {}) | found.get(place, {}) for place in {**own, **found}}
    named = {
        place: {name: arms[arm] for name, arm in summarised(place.task).items() if arm in arms}
        for place, arms in both.items()
    }
    names = list(summarised(TASKS[0]))
    write_atomically(places.output / "summary.md", tables.summary_table(named, names))
    means: dict[str, dict[str, dict[int, float]]] = {}
    for place, arms in named.items():
        for name, arm in arms.items():
            mean = fmean(arm.column("test_accuracy"))
            means.setdefault(place.task, {}).setdefault(name, {})[place.length] = mean
    if means:
        chance = {task: tasks.by_name(task).constant_guess for task in means}
        figures.save(figures.summary(means, chance), places.output / "summary.png")


STUDY = Study("beyond", write, plan, ARMS)
