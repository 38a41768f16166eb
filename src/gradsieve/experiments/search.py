"""Rates, clipping thresholds and initial gains, searched on networks that no table reports.

| family      | who uses it                                     | what is searched               |
|-------------|-------------------------------------------------|--------------------------------|
| not clipped | `off`, and the paper's skip, at the same rate   | the rate                       |
| clipped     | `clip`, and every method that is built on it    | the threshold                  |
| scaled      | `rms+clip`: scaled by RMSprop, and cooled down  | the threshold                  |
| hold        | `hold+clip`, `start+clip`                       | the gain of the initial w_rec  |
| scaled hold | `hold+rms+clip`                                 | the threshold                  |
| regularised | `regularise`, also clipped, and scaled          | the weight; not clipped, the   |
|             |                                                 | rate too                       |

The scaled ones again where the recurrent weights begin as the identity (`identity`, `identity
hold`), where short sequences come first (`staged`, `staged hold`), and where besides that the units
begin bent, by large input weights and biases that differ (`bent`, `bent hold`), also with sequences
that grow step by step (`grown`, `grown hold`), and with more of them in a minibatch the shorter
they are (`wide`, `wide hold`), the latter from the identity too (`wide identity`, `wide identity
hold`).

What we offer never has a larger budget than what it is compared with. A search run is a third as
long as a reported one; but for the wide ones, which a third of their updates does not make precise,
it is a whole one, over 100 steps, and every longer length takes over what was chosen there; from
the identity as much smaller as it is longer, for what a step does is summed over the steps in time.
The best mean validation accuracy wins; of equals, the fewest updates, and then the lowest
validation loss.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from gradsieve.experiments.config import Cell, Options, RunConfig
from gradsieve.experiments.store import Store

NETWORKS = (1000, 1001, 1002)
SHARE = 3  # a search run has this part of the reported runs' epochs
SHRINKING = ("wide identity", "wide identity hold")  # thresholds: the longer, the smaller
WHOLE = ("wide", "wide hold", *SHRINKING)  # whose search runs are whole ones
WHOLE_LENGTH = 100  # and at most so long

Family = Literal[
    "not clipped",
    "clipped",
    "scaled",
    "hold",
    "scaled hold",
    "identity",
    "identity hold",
    "staged",
    "staged hold",
    "bent",
    "bent hold",
    "grown",
    "grown hold",
    "wide",
    "wide hold",
    "wide identity",
    "wide identity hold",
    "regularised",
    "regularised clipped",
    "regularised scaled",
]


Score = tuple[float, float, float]  # the better, the larger


@dataclass(frozen=True)
class Choice:
    """The settings that a family uses on a task of a length."""

    learning_rate: float
    clip: float | None
    options: Options = ()

    def __str__(self) -> str:
        values = [self.learning_rate, *(() if self.clip is None else (self.clip,))]
        if self.options in BUILT_ON:  # which every choice of its family has
            return ", ".join(f"{value:g}" for value in values)
        own = [option for option in self.options if option not in SCALED]
        named = [f"{name} {value:g}" for name, value in own]
        return ", ".join([f"{value:g}" for value in values] + named)


SCALED: Options = (("cooldown", 1.0), ("rms_decay", 0.999))
IDENTITY: Options = (("cooldown", 1.0), ("identity", 1.0), ("rms_decay", 0.999))
STAGED: Options = (("cooldown", 1.0), ("rms_decay", 0.999), ("stages", 1.0))
BENT: Options = (
    ("bias_spread", 0.5), ("cooldown", 1.0), ("input_gain", 16.0), ("rms_decay", 0.999),
    ("stages", 1.0),
)  # fmt: skip
GROWN: Options = (
    ("bias_spread", 0.25), ("cooldown", 1.0), ("growth", 1.0), ("input_gain", 16.0),
    ("rms_decay", 0.999),
)  # fmt: skip
WIDE: Options = (
    ("bias_spread", 0.25), ("cooldown", 1.0), ("growth", 1.0), ("input_gain", 16.0),
    ("q_max", 1.5), ("rms_decay", 0.999), ("wide", 1.5),
)  # fmt: skip
WIDE_IDENTITY: Options = (
    ("bias_spread", 0.125), ("cooldown", 1.0), ("growth", 1.3), ("identity", 1.0),
    ("input_gain", 8.0), ("q_max", 1.0), ("rms_bound", 10.0), ("rms_decay", 0.999),
    ("retreat", 6.0), ("warmup", 0.01), ("wide", 1.5),
)  # fmt: skip
BUILT_ON: dict[Options, tuple[Family, Family]] = {  # its search without hold, and with it
    SCALED: ("scaled", "scaled hold"),
    IDENTITY: ("identity", "identity hold"),
    STAGED: ("staged", "staged hold"),
    BENT: ("bent", "bent hold"),
    GROWN: ("grown", "grown hold"),
    WIDE: ("wide", "wide hold"),
    WIDE_IDENTITY: ("wide identity", "wide identity hold"),
}
TRIED: dict[Family, tuple[Choice, ...]] = {
    "not clipped": tuple(Choice(rate, None) for rate in (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),  # paper's
    "clipped": tuple(Choice(1e-3, clip) for clip in (0.1, 0.3, 0.5, 1.0, 3.0)),  # product: the step
    "scaled": tuple(Choice(1e-3, clip, SCALED) for clip in (0.1, 0.3, 1.0, 3.0, 10.0)),
    "hold": tuple(Choice(1e-3, 1.0, (("gain", gain),)) for gain in (0.7, 1.0)),
    "scaled hold": tuple(Choice(1e-3, clip, SCALED) for clip in (0.3, 1.0, 2.0)),
    "identity": tuple(Choice(1e-3, clip, IDENTITY) for clip in (0.1, 0.3, 1.0, 3.0, 10.0)),
    "identity hold": tuple(Choice(1e-3, clip, IDENTITY) for clip in (0.3, 1.0, 2.0)),
    "staged": tuple(Choice(1e-3, clip, STAGED) for clip in (0.1, 0.3, 1.0, 3.0, 10.0)),
    "staged hold": tuple(Choice(1e-3, clip, STAGED) for clip in (0.3, 1.0, 2.0)),
    "bent": tuple(Choice(1e-3, clip, BENT) for clip in (0.3, 1.0, 3.0, 10.0, 30.0)),
    "bent hold": tuple(Choice(1e-3, clip, BENT) for clip in (1.0, 3.0, 10.0)),
    "grown": tuple(Choice(1e-3, clip, GROWN) for clip in (0.1, 0.3, 0.7, 1.4, 2.0)),
    "grown hold": tuple(Choice(1e-3, clip, GROWN) for clip in (0.7, 1.4, 2.0)),
    "wide": tuple(Choice(1e-3, clip, WIDE) for clip in (1.0, 2.0)),
    "wide hold": tuple(Choice(1e-3, clip, WIDE) for clip in (1.0, 2.0)),
    "wide identity": tuple(Choice(1e-3, clip, WIDE_IDENTITY) for clip in (1.0, 2.0)),
    "wide identity hold": tuple(Choice(1e-3, clip, WIDE_IDENTITY) for clip in (1.0, 2.0)),
    "regularised": tuple(
        Choice(rate, None, (("weight", weight),))
        for rate, weight in ((1e-5, 0.1), (1e-5, 1.0), (1e-5, 10.0), (1e-4, 1.0), (1e-4, 10.0))
    ),
    "regularised clipped": tuple(
        Choice(1e-3, 1.0, (("weight", weight),)) for weight in (0.01, 0.1, 1.0, 10.0)
    ),
    "regularised scaled": tuple(
        Choice(1e-3, 1.0, (*SCALED, ("weight", weight))) for weight in (0.01, 0.1, 1.0, 10.0)
    ),
}


def family_of(method: str, clipped: bool, options: Options = ()) -> Family:
    """Which search a method takes its settings from."""
    if method == "regularise":
        return (
            "regularised scaled" if options else "regularised clipped" if clipped else "regularised"
        )
    if options:
        return BUILT_ON[options][method == "hold"]
    if method in ("hold", "start"):
        return "hold"
    return "clipped" if clipped else "not clipped"


def configs(cell: Cell, family: Family, epochs: int, networks: int) -> list[RunConfig]:
    """The search runs of one family; a small study searches on few networks too."""
    length = cell.length
    if family in WHOLE:
        length = min(length, WHOLE_LENGTH)
    else:
        epochs = max(1, epochs // SHARE)
    return [
        RunConfig(
            cell.task, length, _method(family), network,
            choice.learning_rate, choice.clip, epochs=epochs,
            variance=cell.variance, options=choice.options,
        )
        for network in NETWORKS[:networks]
        for choice in TRIED[family]
    ]  # fmt: skip


def choose(store: Store, cell: Cell, family: Family, epochs: int, networks: int) -> Choice | None:
    """What the finished search says; None while a run of it is missing."""
    scores: dict[Choice, list[Score]] = {}
    for config in configs(cell, family, epochs, networks):
        row = store.get(config)
        if row is None:
            return None
        choice = Choice(config.learning_rate, config.clip, config.options)
        score = (row["validation_accuracy"], -row["updates"], -row["validation_loss"])
        scores.setdefault(choice, []).append(score)
    best = max(scores, key=lambda choice: _mean_score(scores[choice]))
    if family in SHRINKING and best.clip is not None and cell.length > WHOLE_LENGTH:
        return replace(best, clip=best.clip * WHOLE_LENGTH / cell.length)
    return best


def _method(family: Family) -> str:
    """What a family's search runs train with."""
    if family.startswith("regularised"):
        return "regularise"
    return "hold" if "hold" in family else "off"


def _mean_score(scores: list[Score]) -> list[float]:
    return [sum(values) / len(scores) for values in zip(*scores, strict=True)]
