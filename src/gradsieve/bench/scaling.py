"""How the cost of gradsieve's steps grows with the length, the units and the minibatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradsieve.bench.own_steps import ALWAYS, training_step
from gradsieve.bench.timing import take_turns
from gradsieve.bench.workload import Workload, make_workload
from gradsieve.kernel import NativeFlow, fma_peak

SIZES: dict[str, tuple[int, ...]] = {
    "length": (50, 100, 200, 500, 1000),
    "hidden": (16, 32, 64, 100, 128, 256, 512),
    "batch": (1, 4, 10, 32, 100, 256),
}


@dataclass(frozen=True)
class Point:
    """Seconds of a plain and a full step at one size, and the share of the peak."""

    varied: str
    value: int
    plain: float
    full: float
    share: float  # of the peak, by the useful operations of the plain step
    arrays: float  # the kernel's memory, in arrays of T × B × H numbers


def scaling(turns: int, seconds: float, before: Callable[[str], None]) -> list[Point]:
    """Vary one size at a time around T = 100, H = 100, B = 10."""
    points = []
    for varied, values in SIZES.items():
        for value in values:
            before(f"{varied} {value}")
            workload = make_workload(**{varied: value})
            steps = {
                "plain": training_step(workload, None),
                "full": training_step(workload, ALWAYS),
            }
            peaks: list[float] = []
            taken = take_turns(
                steps,
                turns,
                seconds,
                every_turn=lambda: peaks.append(fma_peak(0.02)),  # noqa: B023
            )
            share = taken["plain"].share_of(peaks, workload.useful_operations)
            points.append(
                Point(
                    varied,
                    value,
                    taken["plain"].median,
                    taken["full"].median,
                    share.median,
                    memory_in_arrays(workload),
                )
            )
    return points


def memory_in_arrays(workload: Workload) -> float:
    """All that the kernel ever holds for one network, in arrays of T × B × H numbers."""
    flow = NativeFlow(workload.net, workload.u, workload.t, None)
    flow.norms(workload.net, flow.length - 1, "full")
    flow.norm_gradient(flow.length - 1, "Q", "full")
    steps, batch, _ = workload.u.shape
    number = steps * batch * workload.net.hidden * workload.net.flat.itemsize
    return float(flow.memory / number)
