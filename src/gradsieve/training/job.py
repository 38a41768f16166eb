"""The values that a run is given and that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gradsieve.errors import InvalidArgument
from gradsieve.flow import Engine, checked_engine
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.sieve import Corrections
from gradsieve.training.corrections import corrections, finite
from gradsieve.training.data import Problem
from gradsieve.training.older import FORMAT
from gradsieve.training.step import Extension

Stopped = Literal["epochs", "solved", "patience", "interrupted"]


@dataclass(frozen=True)
class Job:
    """One run, without the network that it begins with.

    Attributes:
        task: the problem to learn.
        recipe: how it is trained.
        seed: decides the data and the order of the minibatches, not the initial weights.
        engine: "native" or "reference".
        extension: a study's addition to a step.
        about: entries of run.json for comparisons: `label`, `network` (runs of the same one are
            compared in pairs) and `drawn_by`, the seed by which the recipe's start drew it.
    """

    task: Problem
    recipe: Recipe
    seed: int = 0
    engine: Engine = "native"
    extension: Extension = Extension()
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_engine(self.engine)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InvalidArgument(f"seed is {self.seed!r}; it must be a whole number of at least 0")

    def described(self, net: SRN) -> dict[str, Any]:
        """All that decides a run's result, as JSON."""
        task = self.task
        return {
            "format": FORMAT,
            **self.about,
            "task": task.name,
            "length": getattr(task, "length", None),
            "convention": getattr(task, "convention", None),
            "tolerance": getattr(task, "tolerance", None),
            "chance": task.constant_guess,
            "inputs": net.inputs,
            "hidden": net.hidden,
            "outputs": net.outputs,
            "output": net.output,
            "dtype": str(net.dtype),
            "seed": self.seed,
            "engine": self.engine,
            "recipe": self.recipe.as_dict(),
            **({"extended": True} if self.extension.changes_the_run else {}),
        }


@dataclass(frozen=True, kw_only=True)
class Finished:
    """The fields of every finished run, whichever library has trained it."""

    validation_accuracy: float
    validation_loss: float
    history: list[dict[str, Any]]  # per validation: loss, accuracy, Q, dS, kept, reasons, stalls…
    best_epoch: int
    updates: int
    kept: float
    corrected: float
    stalls: int
    nonfinite: int
    seconds: float
    stopped: Stopped
    recipe: Recipe


@dataclass(frozen=True, kw_only=True)
class Run(Finished):
    """A finished run."""

    test_accuracy: float
    network: SRN  # the best by validation, which the test accuracy is of
    final: SRN

    @property
    def corrections(self) -> Corrections:
        """The sieve's work, e.g. "corrected 29 % of updates between 2,000 and 9,000"."""
        return corrections([self.history])

    def result(self) -> dict[str, Any]:
        """The outcome in numbers, as result.json holds it."""
        left_out = ("history", "network", "final", "recipe")
        kept = {name: value for name, value in vars(self).items() if name not in left_out}
        best = ("validation_accuracy", "validation_loss")  # not finite before any validation
        return kept | {name: finite(kept[name]) for name in best}


def differing(asked: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """The names in which the run that is asked for differs from the one that a folder holds."""
    found = [
        name for name, value in asked.items() if name != "recipe" and stored.get(name) != value
    ]
    own = Recipe.from_dict(asked["recipe"])
    try:
        other = Recipe.from_dict(stored.get("recipe", {}))
    except InvalidArgument:
        return [*found, "recipe"]
    if (own.sieve is None) != (other.sieve is None):  # one by one its settings would say no more
        return [*found, "sieve", *own.differing(replace(other, sieve=own.sieve))]
    return [*found, *own.differing(other)]
