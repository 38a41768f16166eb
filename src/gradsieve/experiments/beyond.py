"""Beyond the paper: the policy that we offer, against clipping, on longer and longer sequences.

With and without RMSprop's scaling, from the ordinary start and from others, with short sequences
first or not, so that it is seen what each is worth.
"""

from __future__ import annotations

from dataclasses import replace

from gradsieve.experiments.config import HOLD, RunConfig, label_of
from gradsieve.experiments.search import BUILT_ON, IDENTITY, STAGED, WIDE_IDENTITY
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Arm, Scope, cell_configs

LENGTHS = (100, 150, 200, 300)
ARMS = (
    Arm("off", clipped=True),
    Arm("start", clipped=True),
    Arm("hold", clipped=True),
    *(Arm(method, True, options) for options in BUILT_ON for method in ("off", "hold")),
)
# What the policy is best built on, task by task: the same at every length.
ADVISED = {
    "temporal_order": IDENTITY,
    "temporal_order_3bit": IDENTITY,
    "adding": STAGED,
    "multiplication": WIDE_IDENTITY,
}


def summarised(task: str) -> dict[str, str]:
    """The arms that a summary shows of a task: what it calls them, and their labels."""
    advised = label_of("off", ADVISED[task], clipped=True)
    return {
        "off": "off",
        "the paper's skip": "frozen",
        "clip": "clip",
        "rms+clip": "rms+clip",
        "rms+clip, with hold": f"{HOLD}rms+clip",
        "advised": advised,
        "advised, with hold": f"{HOLD}{advised}",
    }


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """Every task at each length; lengths that were asked for explicitly are kept to."""
    asked = scope if scope.lengths != Scope().lengths else replace(scope, lengths=LENGTHS)
    return [
        config
        for cell in asked.cells()
        for config in cell_configs(ARMS, cell, asked, store)
        if config.method != "start" or config.option("gain", 1.0) != 1.0  # which is clipping
    ]
