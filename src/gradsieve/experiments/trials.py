"""Trials behind the documentation's claims: small questions, each on a few networks.

None of these networks is among the ten that tables report, and nothing is searched. A trial shows a
direction or a mechanism, not a result. Every run's measures are kept as it ends.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradsieve.experiments import ways
from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.experiments.measures import MEASURES, SEED, Seen
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study
from gradsieve.experiments.workers import worker_processes
from gradsieve.files import write_atomically
from gradsieve.network import SRN
from gradsieve.recipe import Curriculum, Recipe, Sieve
from gradsieve.recipes import own_data, recommended
from gradsieve.text import table
from gradsieve.training import Extension, Outcome, Stepper, run_one


@dataclass(frozen=True)
class Question:
    """A question, the ways of training that answer it, and the measures that tell them apart."""

    name: str
    question: str
    condition: Condition
    networks: Sequence[int]
    arms: Mapping[str, Recipe]
    measures: Mapping[str, str]  # a column, and the format of its values: see MEASURES
    budget: Mapping[str, Any] = field(default_factory=dict)

    def runs(self, scope: Scope) -> list[RunConfig]:
        """The trial's runs, arm by arm."""
        shared = {"validate_every": 5, "probe_every": 0, **self.budget}
        whole = shared.get("epochs", ways.EPOCHS)
        epochs = min(whole, scope.epochs)
        if epochs < min(whole, ways.SMALL):
            shared["sizes"] = ways.SMALL_SIZES
        shared |= {"epochs": epochs, "validate_every": min(shared["validate_every"], epochs)}
        return [
            RunConfig(self.condition, network, recipe.replaced(**shared), arm=name)
            for name, recipe in self.arms.items()
            for network in self.networks[: scope.networks]
        ]


def measured(config: RunConfig, columns: Sequence[str], folder: Path) -> dict[str, float]:
    """The measures of one run; computed once, then read from the folder."""
    path = folder / "trials" / f"{config.key}.json"
    if path.exists():
        found: dict[str, float] = json.loads(path.read_text())
        if set(columns) <= set(found):
            return found
    gradients: list[tuple[float, float]] = []

    def watch(before: SRN, outcome: Outcome, stepper: Stepper) -> None:
        square = stepper.descent.mean_square
        if square is not None:
            usual = math.sqrt(square.values.sum() / (1 - square.decay**square.seen))
            gradients.append((outcome.gradient_norm, usual))

    watched = Extension(observe=watch) if "usual gradient" in columns else Extension()
    seen = Seen(config, run_one(config.initial_network(), config.job(watched)), gradients)
    found = {column: float(MEASURES[column](seen)) for column in columns}
    write_atomically(path, json.dumps(found))
    return found


BENT = ways.LARGER_MINIBATCHES.replaced(clip=2.0)
BENT_IDENTITY = BENT.replaced(recurrent="identity")
FIRST_STAGE = BENT_IDENTITY.replaced(
    stages=(), rate_power=0.0, batch_power=0.0, rms_bound=10.0, cool_down=None, clip=1.0,
    learning_rate=1e-3 * 10**1.3, batch=316,
)  # fmt: skip
CAREFUL = ways.held(ways.FINE_IDENTITY, 1.0)
WITHOUT_COOLING = ways.SCALED.replaced(cool_down=None)


def both(recipes: Mapping[str, Recipe], highest: float = 0.5) -> dict[str, Recipe]:
    """Each recipe without and with the policy "hold"."""
    return {
        name + suffix: ways.held(recipe, highest) if suffix else recipe
        for name, recipe in recipes.items()
        for suffix in ("", ", hold")
    }


WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "whole": {},
    "no sieve": {"sieve": "off"},
    "no curriculum": {"curriculum": Curriculum()},
    "stages by epochs alone": {"advance_at": None},
    "one minibatch for all lengths": {"batch_power": 0.0},
    "one rate for all lengths": {"rate_power": 0.0},
    "no bound on the mean square": {"rms_bound": None},
    "no warm-up": {"warm_up": None},
    "no cool-down": {"cool_down": None},
    "with roll-back": {"roll_back": 6.0},
    "units that do not bend": {"input_gain": 1.0, "bias_spread": 0.0},
    "orthogonal": {"recurrent": "orthogonal"},
}


def starts(task: str, length: int) -> Question:
    recipes = {
        start: WITHOUT_COOLING.replaced(recurrent=start)
        for start in ("gaussian", "orthogonal", "identity")
    }
    return Question(
        f"starts, {task}",
        "Is a start that neither shrinks nor stretches the gradient enough?",
        Condition(task, length), (SEED,), both(recipes),
        {"test accuracy": ".1%", "updates": ".0f", "slow Q": "+.1f"},
        {"epochs": 300, "stop_at": 0.999, "sizes": (20_000, 1_000, 2_000)},
    )  # fmt: skip


TRIALS = (
    Question(
        "gradient signal",
        "A Q in range is not enough. How much of the gradient is signal, the same for two halves of"
        " the data, and how much of the far gradient keeps its direction in time?",
        Condition("temporal_order", 100), (SEED, 1001),
        {
            "clipping": ways.CLIPPED,
            "clipping, steer": ways.CLIPPED.replaced(
                sieve=Sieve("steer", (-2.0, 0.5), limit=math.inf)
            ),
            "clipping, hold": ways.held(ways.CLIPPED),
        },
        {"last accuracy": ".1%", "Q": "+.1f", "signal": "+.2f", "coherence": ".2f",
         "top tenth": ".2f"},
        {"epochs": 80, "stop_at": None, "validate_every": 20, "sizes": (20_000, 1_000, 1_000)},
    ),
    Question(
        "steep directions",
        "Why do clipped steps go nowhere once the far gradient is alive? Near 1, a clipped step is"
        " spent on one direction that is the same for all minibatches.",
        Condition("adding", 100), (SEED, 1001),
        {
            "clipping, hold": ways.held(ways.CLIPPED),
            "RMSprop + clipping, hold": ways.held(WITHOUT_COOLING),
        },
        {"validation loss": ".3f", "top direction": ".2f", "in biases": ".2f"},
        {"epochs": 200, "stop_at": None, "validate_every": 20, "sizes": (20_000, 1_000, 1_000)},
    ),
    Question(
        "exploded gradients",
        "What does one exploded gradient do to RMSprop's scaling? `filled` is the share of updates"
        " in which the root mean square is more than three times the usual gradient.",
        Condition("multiplication", 100), (SEED,),
        {
            "no bound": ways.held(BENT_IDENTITY, 1.5),
            "bound 10": ways.held(BENT_IDENTITY.replaced(rms_bound=10.0), 1.5),
        },
        {"usual gradient": ".1f", "largest gradient": ".0f", "filled": ".0%",
         "test accuracy": ".1%"},
    ),
    Question(
        "warm-up",
        "How many networks do the first steps throw into chaos? A loss above 0.019, a third of a"
        " guess's, over the last 1000 of 2000 updates is that of a lost network.",
        Condition("multiplication", 20), range(1006, 1018),
        both({"whole rate": FIRST_STAGE, "warm-up": FIRST_STAGE.replaced(warm_up=0.5)}, 1.0),
        {"training loss": ".3f"},
        {"epochs": 40, "validate_every": 20, "stop_at": None},
    ),
    Question(
        "roll-back",
        "A network that has learned can be lost. What does going back save?",
        Condition("multiplication", 200), (1014,),
        {"no roll-back": CAREFUL.replaced(roll_back=None), "roll-back": CAREFUL},
        {"test accuracy": ".1%", "updates": ".0f", "roll-backs": ".0f"},
        {"stop_at": 0.999},
    ),
    Question(
        "the recommended recipe",
        "What is each part of the recommended recipe worth? One part at a time is taken away.",
        Condition("temporal_order_3bit", 150), (SEED, 1001, 1002),
        {name: recommended().replaced(**without) for name, without in WITHOUT.items()},
        {"test accuracy": ".1%", "updates": ".0f", "slow Q": "+.1f"},
        {"stop_at": 0.999},
    ),
    starts("temporal_order", 150),
    starts("adding", 100),
    Question(
        "automatic clipping",
        "Does AutoClip's threshold, a quantile of all norms so far, do as well as a searched one?",
        Condition("temporal_order", 150), (SEED, 1001, 1002),
        {
            "threshold 0.3": own_data().replaced(clip=0.3),
            "threshold 1": own_data(),
            "threshold 3": own_data().replaced(clip=3.0),
            "AutoClip, quantile 0.1": own_data().replaced(clip="auto"),
            "AutoClip, quantile 0.5": own_data().replaced(clip="auto", clip_quantile=0.5),
        },
        {"test accuracy": ".1%", "updates": ".0f"},
        {"epochs": 300, "sizes": (20_000, 1_000, 2_000)},
    ),
    Question(
        "velocity on a skip",
        "What should become of the velocity when an update is left out?",
        Condition("temporal_order", 100), (SEED, 1001, 1002),
        {
            f"rate {rate:g}, {what}": ways.SGD.replaced(
                sieve=Sieve("skip", on_skip=what), learning_rate=rate
            )
            for rate in (1e-4, 1e-3)
            for what in ("keep", "decay", "reset")
        },
        {"kept": ".1%", "stalls": ".0f", "Q": "+.1f"},
        {"epochs": 160, "validate_every": 20, "sizes": (20_000, 1_000, 2_000)},
    ),
)  # fmt: skip


def write(scope: Scope, store: Store, places: Places) -> None:
    wanted = [trial for trial in TRIALS if not scope.arms or trial.name in scope.arms]
    runs = [(trial, run) for trial in wanted for run in trial.runs(scope)]
    with worker_processes(places.jobs) as pool:
        jobs = [
            pool.submit(measured, run, list(trial.measures), places.folder) for trial, run in runs
        ]
        found = [
            (trial.name, run.arm, job.result())
            for (trial, run), job in zip(runs, jobs, strict=True)
        ]
    sections = []
    for trial in wanted:
        lines = []
        for arm in trial.arms:
            own = [values for name, its, values in found if (name, its) == (trial.name, arm)]
            told = [
                ", ".join(format(values[column], form) for values in own)
                for column, form in trial.measures.items()
            ]
            lines.append([arm, *told])
        said = ", ".join(map(str, trial.networks[: scope.networks]))
        heading = f"## {trial.name}\n\n{trial.question} {trial.condition}; networks {said}.\n\n"
        sections.append(heading + table(["arm", *trial.measures], lines))
    write_atomically(places.output / "trials.md", "# Trials\n\n" + "\n".join(sections))


STUDY = Study("trials", write, parts=tuple(trial.name for trial in TRIALS))
