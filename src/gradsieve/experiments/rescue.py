"""Networks that begin where the gradient has vanished: can they still be taught?

The paper's Figure 1 shows that a variance of 0.005 makes the initial gradient vanish, and leaves it
there. A person whose network does not learn long dependencies is in just that place.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gradsieve.experiments.accuracies import against, write_accuracies
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.search import Arm
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study, planned
from gradsieve.experiments.table1 import CLIPPING
from gradsieve.experiments.ways import CLIPPED, skipping
from gradsieve.recipe import Sieve

VANISHED = CLIPPED.replaced(variance=0.005)
STEER = Sieve("steer", (-2.0, 1.0), limit=math.inf)
PLAIN = replace(CLIPPING, recipe=VANISHED)
ARMS = (
    PLAIN,
    Arm("clipping, skip (full dS)", skipping(VANISHED, "full"), PLAIN),
    Arm("clipping, steer", VANISHED.replaced(sieve=STEER), PLAIN),
    Arm("clipping, orthogonal start", CLIPPED.replaced(recurrent="orthogonal"), PLAIN),
)


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    return [
        config
        for place in scope.conditions(("temporal_order",), (60, 100))
        for config in planned(ARMS, place, scope, store)
    ]


def write(scope: Scope, store: Store, places: Places) -> None:
    write_accuracies(STUDY, scope, store, places.output, against(PLAIN))


STUDY = Study("rescue", write, plan, ARMS)
