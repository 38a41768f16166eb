"""From sequences to a model: split, scale, search, train, test, diagnose."""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gradsieve.data import Parts, Scaling, Sequences, check_trainable, filled, split
from gradsieve.diagnosis import Diagnosis, diagnose
from gradsieve.errors import GradsieveError, InvalidArgument, needs_extra
from gradsieve.export import Portable
from gradsieve.fitting._gated_run import GatedRun
from gradsieve.fitting._interval import Score, score
from gradsieve.fitting._pace import CLOCKS, Pace, time_limit
from gradsieve.fitting._search import NO_SEARCH, Search, fitted_to, own_recipe
from gradsieve.fitting._task import OwnTask
from gradsieve.fitting._trials import Choice, OnRecord, Trial, Workshop, choices
from gradsieve.model import Model
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.training import Run, side_by_side

MOST_STATES = 200_000_000  # of a minibatch: steps, sequences and units; some 5 GB with all of them
MOST_STACKED = 500_000_000  # values of the training part, each series as long as the longest


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model, and how it was found, tested and diagnosed."""

    model: Model | Portable
    run: Run | GatedRun  # that the model comes from
    search: Search
    trials: list[Trial]  # the best first
    chosen: Choice
    task: OwnTask
    score: Score  # on the test part, or where there is none on the validation part
    diagnosis: Diagnosis  # on the same part
    seconds: float


def fit(
    data: Sequences,
    recipe: Recipe | None = None,
    search: Search | None = None,
    *,
    test: float | Sequences = 0.2,
    validation: float = 0.2,
    name: str = "own sequences",
    seed: int = 0,
    folder: Path | None = None,
    on_record: OnRecord | None = None,
    jobs: int | None = None,
) -> Fitted:
    """Train a network on these sequences.

    Args:
        data: raw sequences and targets.
        recipe: how networks begin and are trained; `own_recipe()` by default.
        search: the choices that the validation part makes; `Search()` by default. With a recipe of
            your own and no `search`, one network is trained as the recipe says.
        test: the share of the series that the network is finally tested on, 0 for none; or test
            sequences of their own.
        validation: the share of the series that choose the network.
        name: the task's name in the report.
        seed: decides split, initial weights and order.
        folder: where the final runs are recorded.
        on_record: called with the name of a run (all trials have one), how many epochs it has,
            and each of its records.
        jobs: runs at a time; this machine's cores by default.

    Ctrl-C ends the search or the training early; the best network so far is the result.
    """
    began = time.perf_counter()
    if search is None:
        search = Search() if recipe is None else NO_SEARCH
    task = _task(data, test, validation, seed, name)
    train = task.parts.train
    recipe = fitted_to(recipe or own_recipe(), train)
    hidden = search.units(train)
    _check_memory(train, recipe.budget.batch, hidden)
    stop = threading.Event()
    work = Workshop(task, recipe, hidden, seed, jobs or os.cpu_count() or 1, on_record, stop)
    clock = CLOCKS[search.clock]
    with ExitStack() as stack:
        stack.enter_context(_threads(search))  # loads PyTorch, before the time begins
        deadline = None if search.seconds is None else clock() + search.seconds
        stack.enter_context(time_limit(clock, deadline, stop))
        pace, asked = None, choices(search, recipe)
        if deadline is not None:
            pace = Pace.of(work, search, clock, deadline)
            search, asked = pace.searching(search, work)
        tried = _search(work, search, asked)
        best = tried[: search.finalists]
        epochs = [recipe.budget.epochs] * len(best)
        if pace is not None:
            epochs = pace.epochs([trial.choice for trial in best], work)
        finals = _finals(work, best, epochs, folder)
        if deadline is not None and not any(math.isfinite(one.loss) for one in (*tried, *finals)):
            stop.clear()  # too little time for anything: one epoch is trained all the same
            where = None if folder is None else folder / "one-epoch"
            finals = [Trial(asked[0], work.run(asked[0], 1, "one epoch", folder=where))]
    chosen, run = _best(tried, finals)
    model = run.network if isinstance(run, GatedRun) else _model(run.network, task)
    return Fitted(
        model=model,
        run=run,
        search=search,
        trials=tried,
        chosen=chosen,
        task=task,
        score=score(model, task.tested),
        diagnosis=diagnose(model, task.tested),
        seconds=time.perf_counter() - began,
    )


def _threads(search: Search) -> AbstractContextManager[None]:
    """One thread for each network that PyTorch trains; an error where there is no PyTorch."""
    if set(search.cells) == {"tanh"}:
        return nullcontext()
    with needs_extra("training gru and lstm cells", "torch"):
        from gradsieve.fitting._gated_parts import one_thread
    return one_thread()


def _search(work: Workshop, search: Search, asked: list[Choice]) -> list[Trial]:
    """All trials, the best first; a single choice is not tried."""
    if len(asked) == 1:
        return [Trial(asked[0])]
    epochs = math.ceil(search.updates / work.recipe.budget.iterations)
    name = f"search, {len(asked)} trials"
    works = [partial(work.run, choice, epochs, name, len(asked)) for choice in asked]
    runs = side_by_side(works, work.jobs, work.stop)
    tried = [Trial(choice, run) for choice, run in zip(asked, runs, strict=True)]
    return sorted(tried, key=lambda trial: trial.loss)


def _finals(
    work: Workshop, best: list[Trial], epochs: list[int], folder: Path | None
) -> list[Trial]:
    """The best trials trained to the end; none where the search was cut short."""
    if work.stop.is_set():
        return []
    works = [
        partial(
            work.run,
            trial.choice,
            most,
            f"final {number}: {trial.choice}",
            folder=None if folder is None else folder / f"final-{number}",
        )
        for number, (trial, most) in enumerate(zip(best, epochs, strict=True), start=1)
    ]
    runs = side_by_side(works, work.jobs, work.stop)
    return [Trial(trial.choice, run) for trial, run in zip(best, runs, strict=True)]


def _best(tried: list[Trial], finals: list[Trial]) -> tuple[Choice, Run | GatedRun]:
    """The final run of the lowest validation loss; where finals were cut short, any run."""
    whole = [trial for trial in finals if not trial.interrupted]
    found = min([*(whole or finals or tried), *([] if whole else tried)], key=lambda one: one.loss)
    if found.run is None or not math.isfinite(found.loss):
        raise GradsieveError(
            "the time was over before any network was validated; allow more time, or fewer trials"
        )
    return found.choice, found.run


def _task(
    data: Sequences, test: float | Sequences, validation: float, seed: int, name: str
) -> OwnTask:
    parts = split(data, validation, 0.0 if isinstance(test, Sequences) else test, seed)
    check_trainable(parts.train)
    if isinstance(test, Sequences):
        parts = Parts(parts.train, parts.validation, _renumbered(parts.train, test))
    scaling = Scaling.of(parts.train)
    whole = (
        None if part is None else filled(part, data.preparation.missing, scaling.mean)
        for part in (parts.train, parts.validation, parts.test)
    )
    return OwnTask(name, Parts(*whole), scaling)  # type: ignore[arg-type]


def _check_memory(train: Sequences, batch: int, hidden: int) -> None:
    """Refuse series that are too long to train on side by side, before memory runs out."""
    longest = int(train.lengths.max())
    states = longest * batch * hidden
    stacked = longest * train.count * train.inputs
    if states > MOST_STATES or stacked > MOST_STACKED:
        name = train.names[int(train.lengths.argmax())]
        raise InvalidArgument(
            f"series {name[:60]!r} has {longest:,} steps; with {train.count} series side by side "
            "that is too long to train on. Cut long series into shorter ones, each with its target"
        )


def _model(net: SRN, task: OwnTask) -> Model:
    """The network with the scaling and the names of the training part."""
    train = task.parts.train
    return Model(
        net,
        scaling=task.scaling,
        classes=train.classes,
        features=train.features,
        per_step=train.per_step,
        equal_lengths=train.equal_lengths,
        preparation=train.preparation,
        longest=int(train.lengths.max()),
    )


def _renumbered(train: Sequences, test: Sequences) -> Sequences:
    """Test sequences with the training part's numbering of classes."""
    like = Model(
        SRN.random(train.inputs, 1, train.outputs, train.output),
        scaling=Scaling.identity(train.inputs),
        classes=train.classes,
        features=train.features,
        per_step=train.per_step,
    )
    return replace(test, targets=like.targets_of(test), classes=train.classes)
