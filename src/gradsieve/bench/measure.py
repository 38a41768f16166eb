"""The whole measurement: contenders side by side, the machine's peak, and the growth."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from gradsieve.bench.own_steps import own_steps, training_step
from gradsieve.bench.scaling import Point, memory_in_arrays, scaling
from gradsieve.bench.timing import Spread, Step, Timing, take_turns
from gradsieve.bench.workload import Workload, make_workload
from gradsieve.errors import GradsieveError
from gradsieve.flow import predict
from gradsieve.kernel import fma_peak, isa
from gradsieve.training.record import versions

SEQUENCES = 1000  # of a validation


@dataclass(frozen=True)
class Measurement:
    """What one run of `gradsieve bench` saw."""

    timings: dict[str, Timing]
    peak: Spread  # fused multiply-adds of one core, in 10⁹ operations a second
    plain_share: Spread  # of that peak, by the useful operations of a plain step
    validation_share: Spread  # likewise, forward only, 1000 sequences
    arrays: float  # the kernel's memory, in arrays of T × B × H numbers
    overhead: dict[str, Spread]  # share of a plain and of a full training step that is Python
    two_networks: Spread | None  # throughput of two networks on two cores, one network's being 1
    points: list[Point]
    left_out: list[str]  # contenders that are not installed
    versions: dict[str, str]
    instruction_set: str

    def as_dict(self) -> dict[str, Any]:
        plain = asdict(self)
        own = self.timings["gradsieve plain"]
        plain["timings"] = {
            name: {
                "seconds": timing.median,
                "turns": timing.turns,
                "ratio": asdict(timing.ratio_to(own)),
            }
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
    workload = make_workload()
    two = _two_networks(workload, turns, before)
    peaks: list[float] = []
    with _one_core():
        steps = own_steps(workload)
        left_out = _add_others(workload, steps)
        check_agreement(steps)
        validation = make_workload(batch=SEQUENCES)
        timed: dict[str, Callable[[], object]] = {
            **steps,
            "validation": lambda: predict(validation.net, validation.u),
        }
        timings = take_turns(timed, turns, seconds, before, lambda: peaks.append(fma_peak()))
        points = scaling(max(3, turns // 3), seconds / 3, before) if grow else []
    steps_of_validation, _, inputs = validation.u.shape
    hidden = validation.net.hidden
    forward = 2 * steps_of_validation * SEQUENCES * hidden * (hidden + inputs)
    return Measurement(
        timings=timings,
        peak=Spread.of([peak / 1e9 for peak in peaks]),
        plain_share=timings["kernel plain"].share_of(peaks, workload.useful_operations),
        validation_share=timings["validation"].share_of(peaks, forward),
        arrays=memory_in_arrays(workload),
        overhead={kind: _overhead(timings, kind) for kind in ("plain", "full")},
        two_networks=two,
        points=points,
        left_out=left_out,
        versions=versions(),
        instruction_set=isa(),
    )


def check_agreement(steps: Mapping[str, Step]) -> None:
    """A contender that finds another dS/(2S) than the reference would be timed for nothing."""
    found = {name: step() for name, step in steps.items() if name.endswith(("frozen", "full"))}
    for name, relative in found.items():
        truth = found[f"reference {name.split()[-1]}"]
        if relative is None:  # the kernel alone, which is not asked to report
            continue
        if truth is None or not math.isclose(relative, truth, rel_tol=0.01):
            raise GradsieveError(f"{name} finds dS/(2S) = {relative}, the reference {truth}")


def _overhead(timings: dict[str, Timing], kind: str) -> Spread:
    """What a training step takes beyond the kernel's part of it."""
    inside = timings[f"kernel {kind}"].ratio_to(timings[f"gradsieve {kind}"])
    return Spread(1 - inside.median, 1 - inside.highest, 1 - inside.lowest)


def _add_others(workload: Workload, steps: dict[str, Step]) -> list[str]:
    left_out = []
    if find_spec("torch"):
        from gradsieve.bench.torch_steps import torch_steps

        steps |= torch_steps(workload)
    else:
        left_out.append("PyTorch")
    if find_spec("jax"):
        from gradsieve.bench.jax_steps import jax_steps

        steps |= jax_steps(workload)
    else:
        left_out.append("JAX")
    return left_out


def _two_networks(workload: Workload, turns: int, before: Callable[[str], None]) -> Spread | None:
    """Throughput of two threads with a network each, against one; None on a single core."""
    if (os.cpu_count() or 1) < 2:
        return None
    before("two networks at once")
    count = 300

    def many(step: Step) -> None:
        for _ in range(count):
            step()

    steps = [training_step(workload, None) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        taken = take_turns(
            {
                "one": lambda: many(steps[0]),
                "two": lambda: list(pool.map(many, steps)),
            },
            max(5, turns // 2),
            0.0,
            clock=time.perf_counter,  # two cores at once: what counts is when both are done
        )
    ratio = taken["one"].ratio_to(taken["two"])
    return Spread(2 * ratio.median, 2 * ratio.lowest, 2 * ratio.highest)


class _one_core:
    """This process on one core, where the system lets it choose; all cores again afterwards."""

    def __enter__(self) -> None:
        self.allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
        if self.allowed:
            os.sched_setaffinity(0, {max(self.allowed)})

    def __exit__(self, *_: object) -> None:
        if self.allowed:
            os.sched_setaffinity(0, self.allowed)
