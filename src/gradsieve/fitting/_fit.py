"""From sequences to a model: split, scale, search, train, test, diagnose."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gradsieve.data import Parts, Scaling, Sequences, check_trainable, split
from gradsieve.diagnosis import Diagnosis, diagnose
from gradsieve.errors import InvalidArgument
from gradsieve.fitting._interval import Score, score
from gradsieve.fitting._recipe import Recipe
from gradsieve.fitting._search import OnRecord, Trial, initial_network, search
from gradsieve.fitting._task import OwnTask
from gradsieve.model import Model
from gradsieve.network import SRN
from gradsieve.training import Run, run_one

MOST_STATES = 200_000_000  # of a minibatch: steps, sequences and units; some 5 GB with all of them
MOST_STACKED = 500_000_000  # values of the training part, each series as long as the longest


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and what there is to know about it."""

    model: Model
    run: Run  # of the final training
    trials: list[Trial]
    chosen: Trial
    task: OwnTask
    score: Score  # on the test part, or where there is none on the validation part
    diagnosis: Diagnosis  # on the same part
    seconds: float


def fit(
    data: Sequences,
    recipe: Recipe | None = None,
    *,
    test_data: Sequences | None = None,
    validation: float = 0.2,
    test: float = 0.2,
    name: str = "own sequences",
    folder: Path | None = None,
    jobs: int | None = None,
    on_record: OnRecord | None = None,
) -> Fitted:
    """Train a network on these sequences.

    Args:
        data: raw sequences and targets.
        recipe: choices; see `Recipe`.
        test_data: test sequences of their own; then `test` is not split off.
        validation: share of the series that choose the network.
        test: share of the series that it is finally tested on; 0 for none.
        name: what the report calls the task.
        folder: where the final run is recorded.
        jobs: trials that run at a time; this machine's cores by default.
        on_record: called with a run's name, its last epoch and each of its records.
    """
    began = time.perf_counter()
    recipe = recipe or Recipe()
    task = _task(data, test_data, recipe, validation, test, name)
    train = task.parts.train
    trials, tried = search(task, recipe, jobs, on_record)
    best: tuple[Run, Trial] | None = None
    for number, trial in enumerate(trials[: recipe.finalists]):
        run = run_one(
            initial_network(task, recipe, trial.initial, trial.network),
            replace(task, noise=trial.noise),
            recipe.settings(train, trial.learning_rate, recipe.epochs),
            folder=None if folder is None else folder / f"final-{number + 1}",
            about={
                "label": f"{recipe.sieve}, {trial.initial}, noise {trial.noise:g}",
                "network": 2 * trial.network + (trial.initial == "gaussian"),
                "initial": trial.initial,
                "variance": recipe.initial_variance(train),
            },
            on_record=_named(
                recipe.epochs,
                on_record,
                f"final {number + 1}: rate {trial.learning_rate:g}, noise {trial.noise:g}",
            ),
        )
        if best is None or run.validation_loss < best[0].validation_loss:
            best = run, trial
        if run.stopped == "interrupted":
            # Cut short, it may not have come as far as its trial did.
            if trial in tried and tried[trial].validation_loss < best[0].validation_loss:
                best = replace(tried[trial], stopped="interrupted"), trial
            break
    if best is None:
        raise InvalidArgument("finalists is 0; at least one trial must be trained to the end")
    run, trial = best
    model = Model(
        run.network,
        task.scaling,
        train.classes,
        train.features,
        train.per_step,
        train.equal_lengths,
    )
    return Fitted(
        model=model,
        run=run,
        trials=trials,
        chosen=trial,
        task=task,
        score=score(model, task.tested, recipe.engine),
        diagnosis=diagnose(model, task.tested, engine=recipe.engine),
        seconds=time.perf_counter() - began,
    )


def _task(
    data: Sequences,
    test_data: Sequences | None,
    recipe: Recipe,
    validation: float,
    test: float,
    name: str,
) -> OwnTask:
    parts = split(data, validation, 0.0 if test_data is not None else test, recipe.seed)
    check_trainable(parts.train)
    _check_memory(parts, recipe)
    scaling = Scaling.of(parts.train)
    if test_data is not None:
        parts = Parts(parts.train, parts.validation, _renumbered(parts.train, test_data))
    return OwnTask(name, parts, scaling)


def _check_memory(parts: Parts, recipe: Recipe) -> None:
    """Refuse series that are too long to train on side by side, before memory runs out."""
    train = parts.train
    longest = int(train.lengths.max())
    states = longest * recipe.batch * recipe.units(train)
    stacked = longest * train.count * train.inputs
    if states > MOST_STATES or stacked > MOST_STACKED:
        name = train.names[int(train.lengths.argmax())]
        raise InvalidArgument(
            f"series {name[:60]!r} has {longest:,} steps; with {train.count} series side by side "
            "that is too long to train on. Cut long series into shorter ones, each with its target"
        )


def _renumbered(train: Sequences, test_data: Sequences) -> Sequences:
    """Test sequences with the training part's numbering of classes."""
    like = Model(
        SRN.random(train.inputs, 1, train.outputs, train.output),
        Scaling.identity(train.inputs),
        train.classes,
        train.features,
        train.per_step,
    )
    return replace(test_data, targets=like.targets_of(test_data), classes=train.classes)


def _named(
    epochs: int, on_record: OnRecord | None, name: str
) -> Callable[[dict[str, Any]], None] | None:
    return None if on_record is None else lambda record: on_record(name, epochs, record)
