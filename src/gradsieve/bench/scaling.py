"""How the cost of gradsieve's steps grows with the length, the units and the minibatch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradsieve.bench.own_steps import ALWAYS, training_step
from gradsieve.bench.problem import Problem, make_problem
from gradsieve.bench.timing import take_turns
from gradsieve.kernel import NativeFlow

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
    giga_operations: float  # useful ones of the plain step, per second
    arrays: float  # the kernel's memory, in arrays of T × B × H numbers


def scaling(turns: int, seconds: float, before: Callable[[str], None]) -> list[Point]:
    """Vary one size at a time around T = 100, H = 100, B = 10."""
    points = []
    for varied, values in SIZES.items():
        for value in values:
            before(f"{varied} {value}")
            problem = make_problem(**{varied: value})
            steps = {
                "plain": training_step(problem, None),
                "full": training_step(problem, ALWAYS),
            }
            taken = take_turns(steps, turns, seconds)
            plain, full = min(taken["plain"].turns), min(taken["full"].turns)
            rate = problem.useful_operations / plain / 1e9
            points.append(Point(varied, value, plain, full, rate, memory_in_arrays(problem)))
    return points


def memory_in_arrays(problem: Problem) -> float:
    """All that the kernel holds for one network, in arrays of T × B × H numbers."""
    flow = NativeFlow(problem.net, problem.u, problem.t, None)
    steps, batch, _ = problem.u.shape
    number = steps * batch * problem.net.hidden * problem.net.flat.itemsize
    return float(flow.memory / number)
