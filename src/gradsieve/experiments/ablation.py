"""What each part of the method is worth: every arm, with and without clipping, and our advice."""

from __future__ import annotations

from gradsieve.experiments.config import REPORTED, RunConfig
from gradsieve.experiments.search import SCALED
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Arm, Scope, cell_configs

GUIDED = ("off", "frozen", "full", "listing", "regularise", "select", "steer")
ARMS = (
    *(Arm(method, clipped) for clipped in (False, True) for method in GUIDED),
    Arm("hold", clipped=True),  # which is made for clipped updates
    Arm("off", clipped=True, options=SCALED),
    Arm("regularise", clipped=True, options=SCALED),
    Arm("hold", clipped=True, options=SCALED),  # what we recommend
)


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """Every arm, and random skipping at the rate that `full` had on the same network."""
    needed: list[RunConfig] = []
    for cell in scope.cells():
        configs = cell_configs(ARMS, cell, scope, store)
        rows = [(config, store.get(config)) for config in configs if config.method == "full"]
        random = [random_like(config, row["kept"]) for config, row in rows if row is not None]
        needed += sorted([*configs, *random], key=_turn)
    return needed


def _turn(run: RunConfig) -> tuple[bool, int]:
    """Searches first, then network by network: a study cut short compares the same ones."""
    return run.network in REPORTED, run.network


def random_like(full: RunConfig, kept: float) -> RunConfig:
    """Random skipping that keeps as many minibatches as the sieve kept on this network."""
    return RunConfig(
        full.task,
        full.length,
        "random",
        full.network,
        full.learning_rate,
        full.clip,
        epochs=full.epochs,
        variance=full.variance,
        options=(("kept", round(kept, 6)),),
    )
