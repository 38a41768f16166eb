"""Seconds until a task is solved: the core by its recommended recipe, and PyTorch's three modules.

Each PyTorch module gets its best of six ways, searched with seeds that are not those of the
comparison: PyTorch's start or `gst.init_`, and Adam's rate. A candidate has half the time of a
network of the comparison. All see the same sequences, train on minibatches of the same size and are
validated equally often. Seconds are CPU time of one core, for training and validation, until the
validation accuracy passes 99 %.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gradsieve import recipes
from gradsieve.network import SRN
from gradsieve.tasks import Task
from gradsieve.training import Data, Job, run_one
from gradsieve.training.data import TaskVariant, draw

HIDDEN = 100
MODULES = ("RNN", "GRU", "LSTM")
RATES = (3e-4, 1e-3, 3e-3)
GOAL = 0.99  # of the validation sequences
SEARCHED = 1000  # the first seed of the search
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Way:
    """How a PyTorch module is trained: Adam, gradient clipped to length 1."""

    module: str
    start: str  # "PyTorch", or "gst.init_": orthogonal, or gate biases by the length
    rate: float

    @property
    def name(self) -> str:
        start = "" if self.start == "PyTorch" else f", {self.start}"
        return f"nn.{self.module}{start}, Adam {self.rate:g}"


@dataclass(frozen=True)
class Attempt:
    """One network: the seconds until it was solved, or None, and how good it got."""

    task: str
    length: int
    contestant: str  # "gradsieve", "nn.RNN" …
    way: str
    seed: int
    seconds: float | None
    spent: float  # seconds in all; where not solved, the cap
    updates: int
    accuracy: float  # best on the validation set

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def order(self) -> tuple[float, float]:
        """The better of two comes first: the sooner solved, or else the more accurate."""
        return (math.inf if self.seconds is None else self.seconds, -self.accuracy)


@dataclass(frozen=True)
class Drawn(TaskVariant):
    """A task with its sequences drawn, so that drawing them is no part of anybody's time."""

    seed: int
    sequences: Data

    @classmethod
    def of(cls, task: Task, seed: int) -> Drawn:
        net = SRN.random(task.inputs, 1, task.outputs, task.output)
        return cls(task, seed, draw(task, net, recipes.recommended().budget.sizes, seed))

    def data(self) -> Data:
        return self.sequences

    def of_length(self, length: int) -> Task:
        """For a curriculum; its sequences are drawn in the run's own time."""
        return self.task.of_length(length)


@dataclass
class _Race:
    """The progress of a network, and whether its time is over."""

    cap: float
    seconds: float | None = None
    spent: float = 0.0
    updates: int = 0
    accuracy: float = 0.0

    def __post_init__(self) -> None:
        self.started = time.process_time()

    def over(self, updates: int, accuracy: float) -> bool:
        self.spent = time.process_time() - self.started
        self.updates, self.accuracy = updates, max(self.accuracy, accuracy)
        if accuracy > GOAL:
            self.seconds = self.spent
        return self.seconds is not None or self.spent > self.cap

    def outcome(self, drawn: Drawn, contestant: str, way: str) -> Attempt:
        task, found = drawn.task, (self.seconds, self.spent, self.updates, self.accuracy)
        return Attempt(task.name, task.length, contestant, way, drawn.seed, *found)


def time_to_accuracy(
    task: Task, networks: int, cap: float, before: Progress = lambda name: None
) -> Iterator[Attempt]:
    """Search each module's best way, then let all train, one seed after the other."""
    import torch

    torch.set_num_threads(1)
    drawn = Drawn.of(task, SEARCHED)
    ways = [search(module, drawn, cap / 2, before) for module in MODULES]
    for seed in range(networks):
        drawn = Drawn.of(task, seed)
        before(f"{task.name} T={task.length}, network {seed}: gradsieve")
        yield race_core(drawn, cap)
        for way in ways:
            before(f"{task.name} T={task.length}, network {seed}: {way.name}")
            yield race_torch(way, drawn, cap)


def search(module: str, drawn: Drawn, cap: float, before: Progress = lambda name: None) -> Way:
    """The way that solves the task first; a candidate has as long as the best one so far took."""
    best: tuple[Attempt, Way] | None = None
    for start, rate in itertools.product(("PyTorch", "gst.init_"), RATES):
        way = Way(module, start, rate)
        before(f"searching {way.name}")
        found = race_torch(way, drawn, cap)
        if best is None or found.order < best[0].order:
            best = (found, way)
        cap = best[0].spent
    assert best is not None
    return best[1]


def race_core(drawn: Drawn, cap: float) -> Attempt:
    """gradsieve's network, by `gs.recipes.recommended()` as it is."""
    recipe = recipes.recommended()
    stop = threading.Event()
    net = SRN.random(
        drawn.inputs, HIDDEN, drawn.outputs, drawn.output, start=recipe.start, seed=drawn.seed
    )

    def on_record(record: dict[str, Any]) -> None:
        if race.over(record["updates"], record["accuracy"]):
            stop.set()

    race = _Race(cap)
    run_one(net, Job(drawn, recipe, drawn.seed), on_record=on_record, stop=stop)
    return race.outcome(drawn, "gradsieve", "gs.recipes.recommended()")


def race_torch(way: Way, drawn: Drawn, cap: float) -> Attempt:
    """A PyTorch module with a linear head, trained the usual way."""
    import torch
    from torch import nn

    import gradsieve.torch as gst

    budget = recipes.recommended().budget
    torch.manual_seed(drawn.seed)
    recurrent = getattr(nn, way.module)(drawn.inputs, HIDDEN)
    if way.start == "gst.init_":
        gst.init_(recurrent, reach=drawn.task.length)
    head = nn.Linear(HIDDEN, drawn.outputs)
    model = nn.ModuleList([recurrent, head])
    optimizer = torch.optim.Adam(model.parameters(), lr=way.rate)
    loss_of = nn.CrossEntropyLoss() if drawn.output == "softmax" else nn.MSELoss()
    u, t, _ = drawn.sequences.validation.batch(slice(None))
    order = np.random.default_rng(drawn.seed)
    race, updates = _Race(cap), 0
    while True:
        for _ in range(budget.validate_every * budget.iterations):
            picked = order.integers(0, len(drawn.sequences.train), budget.batch)
            inputs, targets, _ = drawn.sequences.train.batch(picked)
            optimizer.zero_grad()
            outputs = head(recurrent(torch.from_numpy(inputs))[0][-1])
            torch.autograd.backward(loss_of(outputs, torch.from_numpy(targets)))
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            updates += 1
        with torch.no_grad():
            answers = head(recurrent(torch.from_numpy(u))[0][-1])
        if race.over(updates, drawn.accuracy(answers.numpy(), t)):
            return race.outcome(drawn, f"nn.{way.module}", way.name)
