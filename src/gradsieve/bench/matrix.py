"""The matrix: every size, three cells, one core and all cores, the contenders taking turns.

Each number of cores is measured in a process of its own, because JAX fixes its threads when it is
imported. A row is one size: its contenders took turns in one run, and only ratios of one row count.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from multiprocessing import get_context
from typing import Any

from gradsieve.bench.timing import Step, Timing, take_turns
from gradsieve.bench.workload import GATES, Dimensions, Workload, make_workload
from gradsieve.kernel import fma_peak, limit_threads

SIZES = (  # H, B, T
    (32, 10, 100),
    (100, 10, 100),
    (100, 10, 1000),
    (128, 64, 200),
    (256, 128, 100),
    (1024, 32, 50),
)
GROWTH: dict[str, tuple[int, ...]] = {
    "length": (50, 100, 200, 500, 1000),
    "hidden": (16, 32, 64, 100, 128, 256, 512),
    "batch": (1, 4, 10, 32, 100, 256),
}
PLAIN = {"core plain", "gst plain", "PyTorch plain"}
LIBRARIES = {"PyTorch": "torch", "JAX": "jax"}
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


@dataclass(frozen=True)
class Row:
    """Seconds of a step of each contender in each turn, at one size."""

    size: Dimensions
    cores: int
    timings: dict[str, Timing]
    peak: Timing | None = field(default=None)  # 10⁹ operations a second, by turn

    def times(self, name: str, than: str) -> float | None:
        """How many times as fast one contender is as another, if both were there."""
        if name not in self.timings or than not in self.timings:
            return None
        return self.timings[than].ratio_to(self.timings[name])

    def share(self, inputs: int = 6) -> float | None:
        """The share of one core's peak at which forward and backward do their operations."""
        best = next((name for name in ("kernel", "gst plain") if name in self.timings), None)
        if best is None or self.peak is None:
            return None
        operations = self.size.operations(inputs) / 1e9
        return self.timings[best].share_of(self.peak.turns, operations)

    def as_dict(self) -> dict[str, Any]:
        turns = {"peak": self.peak, **self.timings}
        return {
            **asdict(self.size),
            "cores": self.cores,
            "turns": {
                name: [float(f"{value:.4g}") for value in timing.turns]
                for name, timing in turns.items()
                if timing is not None
            },
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Row:
        timings = {name: Timing(tuple(turns)) for name, turns in stored["turns"].items()}
        size = Dimensions(*(stored[name] for name in ("cell", "hidden", "batch", "length")))
        return cls(size, stored["cores"], timings, timings.pop("peak", None))


def all_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def matrix_sizes() -> list[Dimensions]:
    return [Dimensions(cell, *sizes) for cell in GATES for sizes in SIZES]


def growth_sizes() -> list[Dimensions]:
    """One size varied at a time around T = 100, H = 100, B = 10."""
    middle = {"hidden": 100, "batch": 10, "length": 100}
    return [
        Dimensions(cell, **{**middle, varied: value})
        for cell in GATES
        for varied, values in GROWTH.items()
        for value in values
    ]


def measure_all(
    quick: bool = False,
    cores: int | None = None,
    before: Callable[[str], None] = lambda name: None,
) -> tuple[list[Row], list[Row]]:
    """The matrix on one core and on all, or on `cores`; the growth on one. `quick`: one size."""
    turns, seconds = (3, 0.02) if quick else (5, 0.03)
    sizes = [Dimensions(cell, 100, 10, 100) for cell in GATES] if quick else matrix_sizes()
    rows: list[Row] = []
    for count in sorted({1, all_cores()} if cores is None else {cores}):
        rows += measure_rows(sizes, count, turns, seconds, before=before)
    grown = [] if quick else growth_sizes()
    growth = measure_rows(grown, 1, 3, 0.02, others=False, before=before)
    return rows, [row for row in growth if row.timings]


def measure_rows(
    sizes: list[Dimensions],
    cores: int,
    turns: int,
    seconds: float,
    others: bool = True,
    before: Callable[[str], None] = lambda name: None,
) -> Iterator[Row]:
    """Measure row by row on so many cores; without `others` only gradsieve's own contenders."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=_use_cores, initargs=(cores,)) as process:
        for size in sizes:
            before(f"{size.name}, {cores} core{'s' if cores > 1 else ''}")
            yield process.submit(measure_row, size, cores, turns, seconds, others).result()


def measure_row(size: Dimensions, cores: int, turns: int, seconds: float, others: bool) -> Row:
    """One row, in this process as it is."""
    peaks: list[float] = []
    steps = contenders(make_workload(size), others)
    if cores > 1:
        steps |= {f"{name}, one core": _alone(steps[name], cores) for name in PLAIN & set(steps)}
    taken = take_turns(
        steps,
        turns,
        seconds,
        every_turn=lambda: peaks.append(fma_peak(0.02) / 1e9),
        # Wall time on several cores, which counts until all are done; CPU time on one.
        clock=time.process_time if cores == 1 else time.perf_counter,
    )
    return Row(size, cores, taken, Timing(tuple(peaks)))


def contenders(workload: Workload, others: bool = True) -> dict[str, Step]:
    """The steps of the core and of the installed libraries at this size."""
    from gradsieve.bench.own_steps import own_steps

    steps = own_steps(workload) if workload.size.cell == "tanh" else {}
    if find_spec("torch"):
        from gradsieve.bench.torch_steps import torch_steps

        steps |= torch_steps(workload)
    if others and find_spec("jax"):
        from gradsieve.bench.jax_steps import jax_steps

        steps |= jax_steps(workload)
    own = ("core", "kernel", "gst")
    return {name: step for name, step in steps.items() if others or name.startswith(own)}


def _alone(step: Step, cores: int) -> Step:
    """The same step on one core, in a process that has several."""

    def alone() -> None:
        _set_threads(1)
        step()
        _set_threads(cores)

    return alone


def left_out() -> list[str]:
    """Libraries that are not installed, and so not compared with."""
    return [name for name, module in LIBRARIES.items() if not find_spec(module)]


def _set_threads(count: int) -> None:
    limit_threads(count)
    if find_spec("torch"):
        import torch

        torch.set_num_threads(count)


def _use_cores(cores: int) -> None:
    if cores == 1:
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD}"
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    _set_threads(cores)
