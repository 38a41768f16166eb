"""The whole measurement: contenders side by side, the machine's peak, and the growth."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from gradsieve.bench.own_steps import own_steps, training_step
from gradsieve.bench.problem import Problem, make_problem
from gradsieve.bench.scaling import Point, memory_in_arrays, scaling
from gradsieve.bench.timing import Step, Timing, take_turns
from gradsieve.flow import predict
from gradsieve.kernel import fma_peak
from gradsieve.training.record import versions

SEQUENCES = 1000  # of a validation


@dataclass(frozen=True)
class Measurement:
    """What one run of `gradsieve bench` saw."""

    timings: dict[str, Timing]
    peak: float  # fused multiply-adds of one core, in 10⁹ operations a second
    plain_share: float  # of that peak, by the useful operations of a plain step
    validation_share: float  # likewise, forward only, 1000 sequences
    arrays: float  # the kernel's memory, in arrays of T × B × H numbers
    overhead: float  # share of a plain training step that is Python
    two_networks: float | None  # throughput of two networks on two cores, one network's being 1
    points: list[Point]
    left_out: list[str]  # contenders that are not installed
    versions: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        own = self.timings["gradsieve plain"]
        plain["timings"] = {
            name: {"seconds": timing.median, "turns": timing.turns, "ratio": timing.ratio_to(own)}
            for name, timing in self.timings.items()
        }
        return plain


def measure(
    turns: int = 15,
    seconds: float = 0.1,
    grow: bool = True,
    before: Callable[[str], None] = lambda name: None,
) -> Measurement:
    """Run everything; `before` is told what comes next."""
    problem = make_problem()
    two = _two_networks(problem, turns, before)
    with _one_core():
        steps = own_steps(problem)
        left_out = _add_others(problem, steps)
        validation = make_problem(batch=SEQUENCES)
        steps["validation"] = lambda: predict(validation.net, validation.u)
        timings = take_turns(steps, turns, seconds, before)
        before("the machine's peak")
        peak = max(fma_peak() for _ in range(5)) / 1e9
        points = scaling(max(3, turns // 3), seconds / 3, before) if grow else []
    forward = 2 * validation.u.shape[0] * SEQUENCES * 100 * (100 + validation.net.inputs)
    overheads = timings["kernel plain"].ratio_to(timings["gradsieve plain"])
    return Measurement(
        timings=timings,
        peak=peak,
        plain_share=problem.useful_operations / min(timings["kernel plain"].turns) / 1e9 / peak,
        validation_share=forward / min(timings["validation"].turns) / 1e9 / peak,
        arrays=memory_in_arrays(problem),
        overhead=1 - overheads[0],
        two_networks=two,
        points=points,
        left_out=left_out,
        versions=versions(),
    )


def _add_others(problem: Problem, steps: dict[str, Step]) -> list[str]:
    left_out = []
    if find_spec("torch"):
        from gradsieve.bench.torch_steps import torch_steps

        steps |= torch_steps(problem)
    else:
        left_out.append("PyTorch")
    if find_spec("jax"):
        from gradsieve.bench.jax_steps import jax_steps

        steps |= jax_steps(problem)
    else:
        left_out.append("JAX")
    return left_out


def _two_networks(problem: Problem, turns: int, before: Callable[[str], None]) -> float | None:
    """Throughput of two threads with a network each, against one; None on a single core."""
    if (os.cpu_count() or 1) < 2:
        return None
    before("two networks at once")
    count = 300

    def many(step: Step) -> None:
        for _ in range(count):
            step()

    steps = [training_step(problem, None) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        taken = take_turns(
            {
                "one": lambda: many(steps[0]),
                "two": lambda: list(pool.map(many, steps)),
            },
            max(5, turns // 2),
            0.0,
        )
    return 2 * min(taken["one"].turns) / min(taken["two"].turns)


class _one_core:
    """This process on one core, where the system lets it choose; all cores again afterwards."""

    def __enter__(self) -> None:
        self.allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        if self.allowed:
            os.sched_setaffinity(0, {max(self.allowed)})

    def __exit__(self, *_: object) -> None:
        if self.allowed:
            os.sched_setaffinity(0, self.allowed)
