"""Training: propose, judge, apply; epochs, validation, checkpoints.

`train` is the way in. `step` carries out the sieve's decision on one minibatch, `run` is the loop
around it, `descent` moves the weights, `data` has the sequences, `record` the run's folder, `probe`
the looks inside.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, overload

from gradsieve import recipes
from gradsieve.errors import InvalidArgument
from gradsieve.flow import Engine
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.training.data import AnyLength, Data, Problem, Stacked
from gradsieve.training.job import Finished, Job, Run
from gradsieve.training.run import run_one
from gradsieve.training.side_by_side import side_by_side
from gradsieve.training.step import Extension, Outcome, Stepper

__all__ = [
    "AnyLength",
    "Data",
    "Extension",
    "Finished",
    "Job",
    "Outcome",
    "Problem",
    "Run",
    "Stacked",
    "Stepper",
    "run_one",
    "side_by_side",
    "train",
]


@overload
def train(net: SRN, task: Problem, recipe: Recipe | None = None, **settings: Any) -> Run: ...
@overload
def train(
    net: Sequence[SRN], task: Problem, recipe: Recipe | None = None, **settings: Any
) -> list[Run]: ...
def train(
    net: SRN | Sequence[SRN],
    task: Problem,
    recipe: Recipe | None = None,
    *,
    seed: int = 0,
    engine: Engine = "native",
    folder: str | os.PathLike[str] | None = None,
    on_record: Callable[..., None] | None = None,
    jobs: int | None = None,
    **settings: Any,
) -> Run | list[Run]:
    """Train a network, or several at once, on a task.

    Args:
        net: a network, which is left as it is; or several, trained side by side, one thread each.
        task: one of `gradsieve.tasks`, or your own (`gradsieve.training.Problem`).
        recipe: how; by default `gs.recipes.recommended()`, or `own_data()` for a task that
            cannot be drawn at other lengths.
        seed: decides the data and the order of the minibatches. Network i of several has seed + i.
        engine: "native" or "reference".
        folder: where the run is recorded and goes on from; several networks get `net-0`, `net-1`…
        on_record: called with each record of the history (for several networks: index, record).
        jobs: how many networks train at a time; this machine's cores by default.
        **settings: replace single settings or whole parts of the recipe: `epochs=20`, `clip=None`,
            `sieve="off"`.

    Ctrl-C ends the training early and returns the run so far: `run.stopped` is "interrupted".

    >>> import gradsieve as gs
    >>> task = gs.tasks.temporal_order(length=20)
    >>> net = gs.SRN.random(task.inputs, 20, task.outputs, start="orthogonal")
    >>> run = gs.train(net, task, epochs=2, sizes=(200, 100, 100))
    >>> run.updates, run.recipe.sieve.policy
    (100, 'auto')
    """
    default = recipes.recommended if isinstance(task, AnyLength) else recipes.own_data
    chosen = (recipe or default()).replaced(**settings)
    stages = chosen.curriculum.stages
    if stages and {"stages", "curriculum"} & set(settings) and not isinstance(task, AnyLength):
        raise InvalidArgument(
            f"stages is {stages}; the task {task.name} cannot be drawn over other "
            "lengths: it needs a method of_length(length), as the tasks of gradsieve.tasks have"
        )
    where = Path(folder) if folder is not None else None
    if isinstance(net, SRN):
        return run_one(net, Job(task, chosen, seed, engine), where, on_record)
    stop = threading.Event()

    def one(index: int) -> Run:
        return run_one(
            net[index],
            Job(task, chosen, seed + index, engine, about={"network": index}),
            where / f"net-{index}" if where is not None else None,
            None if on_record is None else lambda record: on_record(index, record),
            stop,
        )

    return side_by_side([partial(one, index) for index in range(len(net))], jobs, stop)
