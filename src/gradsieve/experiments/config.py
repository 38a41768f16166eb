"""One run of a study: everything that decides its result, as a value with a key."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from gradsieve import tasks
from gradsieve.network import SRN

REPORTED = tuple(range(10))  # the ten networks of every table; nothing is ever tuned on them
TASKS = ("temporal_order", "temporal_order_3bit", "adding", "multiplication")
Options = tuple[tuple[str, float], ...]
UPDATES = 100_000  # 2000 epochs of 50, as in the paper
HOLD = "hold+"  # how the label of an arm begins that has the policy


@dataclass(frozen=True)
class Cell:
    """Where arms are compared: a task of a length, and how the networks begin."""

    task: str
    length: int
    variance: float = 0.01

    def __str__(self) -> str:
        begun = "" if self.variance == 0.01 else f", variance {self.variance:g}"
        return f"{self.task}, T={self.length}{begun}"


# What a label calls the options that a method is built on, in this order.
NAMES_IN_LABELS = {
    "identity": "identity",
    "input_gain": "bent",
    "stages": "stages",
    "growth": "growth",
    "wide": "wide",
    "rms_decay": "rms",
}


def label_of(method: str, options: Options, clipped: bool) -> str:
    """What an arm is called: `off`, `clip`, `rms+clip`, or the method with what it is built on."""
    parts = [method] if method != "off" else []
    parts += [name for option, name in NAMES_IN_LABELS.items() if option in dict(options)]
    return "+".join(parts + ["clip"] * clipped) or "off"


@dataclass(frozen=True)
class RunConfig:
    """What one network is trained on and how. Its result is a pure function of this value.

    Attributes:
        task: a name of `gradsieve.tasks`.
        length: T.
        method: a name of `gradsieve.experiments.methods`.
        network: which initial weights, data and order of minibatches.
        learning_rate: for the gradient summed over the minibatch.
        clip: largest norm of that gradient, or None.
        epochs: of 50 minibatches of 10, as in the paper.
        variance: of the initial weights.
        options: further settings by name: `gain`, `input_gain` and `bias_spread` of the initial
            network, `identity` where its recurrent weights begin as that, `stages` where short
            sequences come first, `growth` where they grow step by step, the power by which the rate
            of short ones is larger, `wide` the power by which their minibatches are, `rms_decay`,
            `rms_bound`, `warmup`, `cooldown` and `retreat` of `Settings`, and those of the method
            (`q_max` of a sieve; without one it says nothing).
    """

    task: str
    length: int
    method: str
    network: int
    learning_rate: float
    clip: float | None = None
    epochs: int = 2000
    variance: float = 0.01
    hidden: int = 100
    options: Options = ()

    @property
    def label(self) -> str:
        return label_of(self.method, self.options, self.clip is not None)

    @property
    def cell(self) -> Cell:
        return Cell(self.task, self.length, self.variance)

    @property
    def key(self) -> str:
        """The same on every machine, for the same configuration."""
        return hashlib.sha256(self.as_json().encode()).hexdigest()[:20]

    def as_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        plain: dict[str, Any] = json.loads(text)
        plain["options"] = tuple((name, value) for name, value in plain["options"])
        return cls(**plain)

    def option(self, name: str, default: float) -> float:
        return dict(self.options).get(name, default)

    def about(self) -> dict[str, Any]:
        """What a run's folder says of it beside its settings."""
        about = {"label": self.label, "network": self.network, "variance": self.variance}
        return about | self._start()

    def problem(self) -> tasks.Task:
        return tasks.by_name(self.task, length=self.length)

    def initial_network(self) -> SRN:
        task = self.problem()
        return SRN.random(
            task.inputs,
            self.hidden,
            task.outputs,
            task.output,
            self.variance,
            self.network,
            **self._start(),
        )

    def _start(self) -> dict[str, Any]:
        """How the recurrent weights begin, where that is not as the paper has it."""
        options = dict(self.options)
        names = ("gain", "input_gain", "bias_spread")
        start: dict[str, Any] = {name: options[name] for name in names if name in options}
        return start | ({"recurrent": "identity"} if "identity" in options else {})
