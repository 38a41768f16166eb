"""One minibatch of temporal order, the network that learns it, and the sieves around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gradsieve import tasks
from gradsieve.network import SRN, Array

CellName = Literal["tanh", "GRU", "LSTM"]
GATES: dict[CellName, int] = {"tanh": 1, "GRU": 3, "LSTM": 4}
RATE, MOMENTUM = 1e-6, 0.9

# Settings of the sieve: slow Q at every step, always in its range or never; dS at every step.
SIEVES: dict[str, dict[str, Any] | None] = {
    "plain": None,
    "judged": {"policy": "hold", "q_range": (-1e6, 1e6)},
    "corrected": {"policy": "hold", "q_range": (-1e6, -1e5)},
    "predicted": {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e6},
}


@dataclass(frozen=True)
class Dimensions:
    """The sizes of a step: a cell, H units, B sequences of T steps.

    >>> Dimensions("GRU", 100, 10, 200).name
    'GRU H=100 B=10 T=200'
    """

    cell: CellName
    hidden: int
    batch: int
    length: int

    @property
    def name(self) -> str:
        return f"{self.cell} H={self.hidden} B={self.batch} T={self.length}"

    def operations(self, inputs: int) -> int:
        """Multiplications and additions of a plain step: forward, backward, weight gradient."""
        products = 3 * self.hidden**2 + 2 * self.hidden * inputs
        return 2 * self.length * self.batch * GATES[self.cell] * products


@dataclass(frozen=True)
class Workload:
    """A size with its minibatch; `net` is the core's network for it."""

    size: Dimensions
    net: SRN
    u: Array  # (T,B,I) float32
    t: Array  # (B,)


def make_workload(size: Dimensions) -> Workload:
    task = tasks.temporal_order(length=size.length)
    net = SRN.random(task.inputs, size.hidden, task.outputs, task.output, variance=1 / size.hidden)
    u, t = task.sample(size.batch, seed=1)
    return Workload(size, net, np.ascontiguousarray(u), t)
