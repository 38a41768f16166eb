"""The cost of the sieve: a training step with and without it, for each kind of module.

`gradsieve bench --torch` prints this table. Steps of all variants take turns, on one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.bench.timing import Step, take_turns
from gradsieve.bench.torch_steps import training_step
from gradsieve.bench.workload import SIEVES, Dimensions, Workload, make_workload

SPARSE = 10
# By column: a heading and the sieve's settings. Q is never out of range, or always.
VARIANTS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "plain": ("plain step", None),
    "watched": ("Q only", {"policy": "skip", "q_range": (-1e6, 1e6)}),
    "full": ("full", SIEVES["predicted"]),
    "sparse": (f"full, every={SPARSE}", {**(SIEVES["predicted"] or {}), "every": SPARSE}),
    "held": ("hold", SIEVES["judged"]),
    "corrected": ("hold, corrected", SIEVES["corrected"]),
}
MODULES: dict[str, Callable[[int, int], nn.Module]] = {
    "nn.RNN": nn.RNN,
    "nn.GRU": nn.GRU,
    "nn.LSTM": nn.LSTM,
    "nn.RNN, 2 layers": partial(nn.RNN, num_layers=2),
    "nn.LSTM, 2 layers": partial(nn.LSTM, num_layers=2),
    "nn.GRU, bidirectional": partial(nn.GRU, bidirectional=True),
    "gst.RNN": gst.RNN,
    "gst.GRU": gst.GRU,
    "gst.LSTM": gst.LSTM,
}


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a training step (forward, backward, optimizer) by column."""

    module: str
    milliseconds: dict[str, float]

    @property
    def ratios(self) -> list[float]:
        """All but the plain step, in plain steps."""
        plain, *others = self.milliseconds.values()
        return [other / plain for other in others]

    def as_dict(self) -> dict[str, Any]:
        return {"module": self.module, **self.milliseconds}


def measure(size: Dimensions, turns: int) -> list[Cost]:
    """The cost for each kind of module, on one thread."""
    workload, threads = make_workload(size), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return [_measure(name, workload, turns) for name in MODULES]
    finally:
        torch.set_num_threads(threads)


def _measure(name: str, workload: Workload, turns: int) -> Cost:
    """A step that looks now and then is timed over one round of looks."""
    steps = {
        column: training_step(MODULES[name], workload, settings)
        for column, (_, settings) in VARIANTS.items()
    }
    steps["sparse"] = _repeated(steps["sparse"], SPARSE)
    taken = take_turns(steps, turns, 0.0, clock=time.thread_time)
    found = {column: 1e3 * taken[column].median for column in VARIANTS}
    return Cost(name, found | {"sparse": found["sparse"] / SPARSE})


def _repeated(step: Step, times: int) -> Step:
    def repeated() -> None:
        for _ in range(times):
            step()

    return repeated


def table(costs: list[Cost]) -> str:
    """The table that the command prints."""
    heads = [heading for heading, _ in VARIANTS.values()]
    lines = [f"{'module':<22}" + "".join(f"  {head:>10}" for head in heads)]
    for cost in costs:
        plain = f"{cost.milliseconds['plain']:.2f} ms"
        cells = [plain, *(f"{ratio:.2f}×" for ratio in cost.ratios)]
        columns = zip(cells, heads, strict=True)
        aligned = "".join(f"  {cell:>{max(10, len(head))}}" for cell, head in columns)
        lines.append(f"{cost.module:<22}{aligned}")
    return "\n".join(lines)
