"""The one minibatch and network that every contender trains on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradsieve import tasks
from gradsieve.network import SRN, Array

RATE, MOMENTUM = 1e-6, 0.9


@dataclass(frozen=True)
class Workload:
    """A network and a minibatch of temporal order."""

    net: SRN
    u: Array  # (T,B,I) float32
    t: Array  # (B,)

    @property
    def useful_operations(self) -> int:
        """Multiplications and additions of one plain step: forward, backward, gradient."""
        steps, batch, inputs = self.u.shape
        hidden = self.net.hidden
        return int(2 * steps * batch * (3 * hidden * hidden + 2 * hidden * inputs))


def make_workload(length: int = 100, hidden: int = 100, batch: int = 10) -> Workload:
    task = tasks.temporal_order(length=length)
    net = SRN.random(task.inputs, hidden, task.outputs, task.output, variance=1 / hidden)
    u, t = task.sample(batch, seed=1)
    return Workload(net, np.ascontiguousarray(u), t)
