"""gradsieve's own steps: the very ones that the training loop takes, Python and all."""

from __future__ import annotations

from dataclasses import replace

from gradsieve.bench.problem import MOMENTUM, RATE, Problem
from gradsieve.bench.timing import Step
from gradsieve.flow import Engine, Flow, propagate
from gradsieve.sieve import Sieve
from gradsieve.training.settings import Settings
from gradsieve.training.step import Stepper

# dS at every update, whatever Q is: the most that the policy "skip" can cost.
ALWAYS = Sieve(q_range=(-1e6, 1e6), max_change=1e6)


def training_step(problem: Problem, sieve: Sieve | None, engine: Engine = "native") -> Step:
    """One update by the training loop's own stepper."""
    settings = Settings(sieve=sieve, learning_rate=RATE, momentum=MOMENTUM, engine=engine)
    stepper = Stepper(problem.net.copy(), settings)

    def step() -> float | None:
        return stepper.step(problem.u, problem.t, None).verdict.relative

    return step


def kernel_only(problem: Problem, full: bool = False) -> Step:
    """What a step asks of the kernel: the rest is the loop's own Python."""
    flow: Flow | None = None
    update = problem.net.like(1e-6 * problem.net.flat)

    def step() -> None:
        nonlocal flow
        flow = propagate(problem.net, problem.u, problem.t, None, "native", flow)
        flow.norms(None, flow.length - 1, "full")
        if full:
            flow.norms(update, flow.length - 1, "full")

    return step


def own_steps(problem: Problem) -> dict[str, Step]:
    """Plain, frozen and full with the kernel and with the NumPy reference."""
    frozen = replace(ALWAYS, estimator="frozen")
    return {
        "gradsieve plain": training_step(problem, None),
        "gradsieve frozen": training_step(problem, frozen),
        "gradsieve full": training_step(problem, ALWAYS),
        "kernel plain": kernel_only(problem),
        "kernel full": kernel_only(problem, full=True),
        "reference plain": training_step(problem, None, "reference"),
        "reference frozen": training_step(problem, frozen, "reference"),
        "reference full": training_step(problem, ALWAYS, "reference"),
    }
