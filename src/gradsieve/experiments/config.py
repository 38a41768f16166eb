"""One run of a study: everything that decides its result, as a value with a key."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any

from gradsieve.experiments.baselines import BASELINES, Baseline, name_of
from gradsieve.experiments.problems import problem
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.settings import rules
from gradsieve.tasks import Convention
from gradsieve.training import Extension, Job, Problem

REPORTED = tuple(range(10))  # the ten networks of every table; nothing is ever tuned on them
TASKS = ("temporal_order", "temporal_order_3bit", "adding", "multiplication")
CORE = "tanh"  # the cell of gradsieve's own networks; the others are PyTorch's modules
CELLS = (CORE, "nn.RNN", "nn.GRU", "nn.LSTM")


@dataclass(frozen=True)
class Condition:
    """Where arms are compared: a task of a length."""

    task: str
    length: int
    convention: Convention = "author"

    def __str__(self) -> str:
        whose = "" if self.convention == "author" else f", {self.convention}"
        return f"{self.task}, T={self.length}{whose}"

    def problem(self) -> Problem:
        return problem(self.task, self.length, self.convention)


@dataclass(frozen=True)
class RunConfig:
    """The training of one network. Its result is a pure function of this value.

    Attributes:
        condition: the task, its length and convention.
        network: seed of the initial weights, the data and the order of minibatches.
        recipe: how the network begins and is trained.
        baseline: the study's addition to the recipe, or None.
        hidden: units of the network.
        cell: "tanh" trains a `gradsieve.SRN`; "nn.RNN", "nn.GRU" and "nn.LSTM" one of PyTorch's
            modules (`torch_run` has the recipe's meaning there).
        arm: the name of this way of training in tables. It is no part of the run's identity.
    """

    condition: Condition
    network: int
    recipe: Recipe
    baseline: Baseline | None = None
    hidden: int = 100
    arm: str = field(default="", compare=False)
    cell: str = CORE

    @property
    def key(self) -> str:
        """The same on every machine, for equal configurations, however they were written."""
        identity = {name: value for name, value in self.as_dict().items() if name != "arm"}
        text = json.dumps(_numbers_as_floats(identity), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    @property
    def cost(self) -> int:
        """Epochs times steps in time, which the time that a run takes goes by."""
        return self.recipe.budget.epochs * self.condition.length

    def as_dict(self) -> dict[str, Any]:
        added = self.baseline
        return {
            "arm": self.arm,
            "task": self.condition.task,
            "length": self.condition.length,
            "convention": self.condition.convention,
            "hidden": self.hidden,
            "network": self.network,
            "recipe": self.recipe.as_dict(),
            "baseline": None if added is None else {"name": name_of(added)} | added.as_dict(),
            **({} if self.cell == CORE else {"cell": self.cell}),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> RunConfig:
        added = plain["baseline"]
        if added is not None:
            values = {name: value for name, value in added.items() if name != "name"}
            added = BASELINES[added["name"]].from_dict(values)
        condition = Condition(plain["task"], plain["length"], plain["convention"])
        recipe = Recipe.from_dict(plain["recipe"])
        return cls(
            condition, plain["network"], recipe, added, plain["hidden"], plain["arm"],
            plain.get("cell", CORE),
        )  # fmt: skip

    def as_json(self) -> str:
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> RunConfig:
        return cls.from_dict(json.loads(text))

    def replaced(self, **settings: Any) -> RunConfig:
        """The run with single settings of its recipe, or of its baseline, replaced."""
        own = {} if self.baseline is None else rules(type(self.baseline))
        added = {name: value for name, value in settings.items() if name in own}
        others = {name: value for name, value in settings.items() if name not in own}
        return replace(
            self,
            recipe=self.recipe.replaced(**others),
            baseline=self.baseline if not added else replace(self.baseline, **added),  # type: ignore[type-var]
        )

    def initial_network(self) -> SRN:
        task = self.condition.problem()
        return SRN.random(
            task.inputs, self.hidden, task.outputs, task.output,
            start=self.recipe.start, seed=self.network,
        )  # fmt: skip

    def extension(self) -> Extension:
        return Extension() if self.baseline is None else self.baseline.extension(self.recipe)

    def job(self, extension: Extension | None = None) -> Job:
        """The run as `gradsieve.training` has it."""
        return Job(
            self.condition.problem(),
            self.recipe,
            seed=self.network,
            extension=extension or self.extension(),
            about={"label": self.arm, "network": self.network, "drawn_by": self.network},
        )


def _numbers_as_floats(value: Any) -> Any:
    """1 and 1.0 are one number, and must give one key."""
    if isinstance(value, dict):
        return {name: _numbers_as_floats(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_numbers_as_floats(part) for part in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
