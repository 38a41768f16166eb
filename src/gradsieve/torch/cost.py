"""The cost of the sieve: a training step with and without it, for each kind of module.

`gradsieve bench --torch` prints this table. Steps of all variants take turns, so that other work of
the machine falls on all of them alike, and the median is taken.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.fast.modules import GRU, LSTM, RNN

# dS at every judged step, whatever Q is: the most that the policy "skip" can cost.
ALWAYS = {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e6}
NEVER = {"policy": "skip", "q_range": (-1e6, 1e6)}
# Slow Q at every step: in its range, and never in it, so that every step is corrected.
HOLDING = {"policy": "hold", "q_range": (-1e6, 1e6)}
CORRECTING = {"policy": "hold", "q_range": (-1e6, -1e5)}


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a training step (forward, backward, optimizer), for one kind of module."""

    module: str
    plain: float
    watched: float  # Q measured at every step, dS never needed
    full: float  # dS predicted at every step
    sparse: float  # dS predicted at every tenth step
    held: float  # slow Q measured at every step
    corrected: float  # and every step corrected

    @property
    def ratios(self) -> tuple[float, ...]:
        """Of all but the plain step, to it."""
        others = (self.watched, self.full, self.sparse, self.held, self.corrected)
        return tuple(other / self.plain for other in others)


MODULES: dict[str, Callable[[int, int], nn.Module]] = {
    "nn.RNN": nn.RNN,
    "nn.GRU": nn.GRU,
    "nn.LSTM": nn.LSTM,
    "nn.RNN, 2 layers": lambda inputs, hidden: nn.RNN(inputs, hidden, num_layers=2),
    "nn.LSTM, 2 layers": lambda inputs, hidden: nn.LSTM(inputs, hidden, num_layers=2),
    "nn.GRU, bidirectional": lambda inputs, hidden: nn.GRU(inputs, hidden, bidirectional=True),
    "gst.RNN": RNN,
    "gst.GRU": GRU,
    "gst.LSTM": LSTM,
}


class _Loop:
    """One model in training, with or without the sieve."""

    def __init__(
        self,
        make: Callable[[int, int], nn.Module],
        u: Tensor,
        hidden: int,
        settings: dict[str, Any] | None,
    ) -> None:
        torch.manual_seed(0)
        self.u = u
        self.recurrent = make(u.shape[2], hidden)
        width = self.recurrent(u)[0].shape[-1]
        self.head = nn.Linear(width, 4)
        model = nn.ModuleList([self.recurrent, self.head])
        self.targets = torch.randint(0, 4, (u.shape[1],))
        inner = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        self.optimizer = inner if settings is None else Sieve(model, inner, **settings)

    def step(self) -> None:
        self.optimizer.zero_grad()
        outputs = self.recurrent(self.u)[0]
        loss = nn.functional.cross_entropy(self.head(outputs[-1]), self.targets)
        torch.autograd.backward(loss)
        self.optimizer.step()

    def seconds(self, steps: int = 1) -> float:
        start = time.thread_time()
        for _ in range(steps):
            self.step()
        return (time.thread_time() - start) / steps


def measure(
    hidden: int = 100,
    batch: int = 10,
    length: int = 100,
    repeats: int = 15,
    modules: tuple[str, ...] = tuple(MODULES),
) -> list[Cost]:
    """The cost for each kind of module, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_measure(name, hidden, batch, length, repeats) for name in modules]
    finally:
        torch.set_num_threads(threads)


def _measure(name: str, hidden: int, batch: int, length: int, repeats: int) -> Cost:
    u = torch.randn(length, batch, 6, generator=torch.Generator().manual_seed(1))
    variants = (None, NEVER, ALWAYS, {**ALWAYS, "every": 10}, HOLDING, CORRECTING)
    loops = [_Loop(MODULES[name], u, hidden, settings) for settings in variants]
    for loop in loops:
        loop.seconds(2)
    times: list[list[float]] = [[] for _ in loops]
    for _ in range(repeats):
        for loop, found, steps in zip(loops, times, (1, 1, 1, 10, 1, 1), strict=True):
            found.append(loop.seconds(steps))
    return Cost(name, *(1e3 * statistics.median(found) for found in times))


def table(costs: list[Cost]) -> str:
    """The table that the command prints."""
    heads = ("plain step", "Q only", "full", "full, every=10", "hold", "hold, corrected")
    lines = [f"{'module':<22}" + "".join(f"  {head:>10}" for head in heads)]
    for cost in costs:
        cells = [f"{cost.plain:.2f} ms", *(f"{ratio:.2f}×" for ratio in cost.ratios)]
        columns = zip(cells, heads, strict=True)
        lines.append(
            f"{cost.module:<22}"
            + "".join(f"  {cell:>{max(10, len(head))}}" for cell, head in columns)
        )
    return "\n".join(lines)
