"""A gated network before and after training, as values without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gradsieve.export import Portable
from gradsieve.training import Finished

GatedCell = Literal["gru", "lstm"]
GatedStart = Literal["chrono", "uniform"]  # `gradsieve.torch.init_`, or as PyTorch begins


@dataclass(frozen=True)
class Beginning:
    """A gated network before training."""

    cell: GatedCell
    hidden: int
    start: GatedStart
    seed: int  # of its initial weights


@dataclass(frozen=True, kw_only=True)
class GatedRun(Finished):
    """A finished run of a gated network."""

    network: Portable  # the best by validation
