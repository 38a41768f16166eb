"""The worth of each part of the method: every arm with and without clipping, and our advice."""

from __future__ import annotations

import math

from gradsieve.experiments import tables
from gradsieve.experiments.accuracies import against, write_accuracies
from gradsieve.experiments.baselines import Listing, RandomSkip, Regularised
from gradsieve.experiments.beyond import HELD, ORTHOGONAL, SCALED
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.equal_time import equal_times
from gradsieve.experiments.search import Arm, Candidates, each
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study, planned, reported
from gradsieve.experiments.table1 import CLIPPING, PLAIN
from gradsieve.experiments.ways import skipping
from gradsieve.experiments.workers import worker_processes
from gradsieve.files import write_atomically
from gradsieve.recipe import Sieve

FULL = "skip (full dS)"
WEIGHTS = Candidates(each(weight=(0.01, 0.1, 1.0, 10.0)))
RATES_AND_WEIGHTS = Candidates(
    (*each(learning_rate=(1e-5,), weight=(0.1, 1.0, 10.0)),
     *each(learning_rate=(1e-4,), weight=(1.0, 10.0)))
)  # fmt: skip


def judged(plain: Arm, prefix: str, weights: Candidates) -> tuple[Arm, ...]:
    """Every way to judge, add to or replace the updates of one arm, at its searched rate."""
    recipe = plain.recipe
    printed = skipping(recipe, "frozen")
    steer = recipe.replaced(sieve=Sieve("steer", (-2.0, 1.0), limit=math.inf))
    select = recipe.replaced(sieve=Sieve("select", (-1.0, 1.0)))
    return (
        plain,
        Arm(f"{prefix}skip (Lemma 1)", printed, plain),
        Arm(f"{prefix}{FULL}", skipping(recipe, "full"), plain),
        Arm(f"{prefix}skip (measured dS)", skipping(recipe, "measured"), plain),
        Arm(f"{prefix}Algorithm 1 as printed", printed, plain, Listing()),
        Arm(f"{prefix}SGD-CR", recipe, weights, Regularised()),
        Arm(f"{prefix}select", select, plain),
        Arm(f"{prefix}steer", steer, plain),
    )


AT_RANDOM = {
    f"{prefix}{FULL}": Arm(f"{prefix}random skipping", plain.recipe, plain, RandomSkip())
    for prefix, plain in (("", PLAIN), ("clipping, ", CLIPPING))
}
ARMS = (
    *judged(PLAIN, "", RATES_AND_WEIGHTS),
    *judged(CLIPPING, "clipping, ", WEIGHTS),
    HELD,  # made for clipped updates
    SCALED[0],
    Arm(f"{SCALED[0].name}, SGD-CR", SCALED[0].recipe, WEIGHTS, Regularised()),
    SCALED[1],
    *ORTHOGONAL,
)


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """Every arm, and random skipping at the rate that `FULL` had on the same network.

    Searches first, then network by network: a study cut short compares the same networks.
    """
    needed: list[RunConfig] = []
    for place in scope.conditions():
        configs = planned(ARMS, place, scope, store)
        for config in list(configs):
            row = store.get(config) if config.arm in AT_RANDOM else None
            if row is not None:
                configs.append(random_like(config, row["kept"]))
        first = {config.key for config in configs} - {own.key for own in reported(configs)}
        needed += sorted(configs, key=lambda run: (run.key not in first, run.network))
    return needed


def random_like(full: RunConfig, kept: float) -> RunConfig:
    """Random skipping that keeps as many minibatches as the sieve kept on this network."""
    arm = AT_RANDOM[full.arm]
    return RunConfig(
        full.condition,
        full.network,
        full.recipe.replaced(sieve="off"),
        RandomSkip(round(kept, 6)),
        arm=arm.name,
    )


def write(scope: Scope, store: Store, places: Places) -> None:
    order = [arm.name for arm in STUDY.arms]
    runs = sorted(reported(plan(scope, store)), key=lambda run: order.index(run.arm))
    with worker_processes(1) as pool:  # so that NumPy's threads do not count as one update's
        timed = pool.submit(equal_times, runs, places.folder).result()
    if timed:  # rows that a record brought have no history to be read
        write_atomically(places.output / "equal-time.md", tables.equal_time_table(timed))
    at_random = {name: arm.name for name, arm in AT_RANDOM.items()}
    opponents = against(PLAIN, CLIPPING) | {"random skipping at its rate": at_random.get}
    write_accuracies(STUDY, scope, store, places.output, opponents)


STUDY = Study("ablation", write, plan, (*ARMS, *AT_RANDOM.values()))
