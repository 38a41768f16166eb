"""Table 1 of the paper, with the full estimator, with clipping, and from an orthogonal start."""

from __future__ import annotations

from gradsieve.experiments.accuracies import against, write_accuracies
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.search import Arm, Candidates, each
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study, planned
from gradsieve.experiments.ways import CLIPPED, SGD, skipping

RATES = each(learning_rate=(1e-5, 3e-5, 1e-4, 3e-4, 1e-3))  # the paper's range
PLAIN = Arm("SGD", SGD, Candidates(RATES))
CLIPPING = Arm("clipping", CLIPPED, Candidates(each(clip=(0.1, 0.3, 0.5, 1.0, 3.0))))
ARMS = (
    PLAIN,
    Arm("skip (Lemma 1)", skipping(SGD, "frozen"), PLAIN),
    Arm("skip (full dS)", skipping(SGD, "full"), PLAIN),
    CLIPPING,
    Arm("SGD, orthogonal start", SGD.replaced(recurrent="orthogonal"), Candidates(RATES)),
)


def plan(scope: Scope, store: Store) -> list[RunConfig]:
    """Condition by condition: T = 100 is complete for all tasks before T = 150 begins."""
    return [config for place in scope.conditions() for config in planned(ARMS, place, scope, store)]


def write(scope: Scope, store: Store, places: Places) -> None:
    write_accuracies(STUDY, scope, store, places.output, against(PLAIN))


STUDY = Study("table1", write, plan, ARMS)
