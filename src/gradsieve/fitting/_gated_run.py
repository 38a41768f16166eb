"""What begins and what ends the training of a gated network: values, without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gradsieve.export import Portable
from gradsieve.recipe import Recipe

GatedCell = Literal["gru", "lstm"]
GatedStart = Literal["chrono", "uniform"]  # `gradsieve.torch.init_`, or as PyTorch begins


@dataclass(frozen=True)
class Beginning:
    """A gated network before training."""

    cell: GatedCell
    hidden: int
    start: GatedStart
    seed: int  # of its initial weights


@dataclass(frozen=True)
class GatedRun:
    """A finished run; its fields are those of `gradsieve.training.Run`."""

    validation_accuracy: float
    validation_loss: float
    history: list[dict[str, Any]]
    network: Portable  # the best by validation
    best_epoch: int
    updates: int
    kept: float
    corrected: float
    stalls: int
    nonfinite: int
    seconds: float
    stopped: Literal["epochs", "solved", "patience", "interrupted"]
    recipe: Recipe
