"""gradsieve's own steps: the very ones that the training loop takes, Python and all."""

from __future__ import annotations

from dataclasses import replace

from gradsieve.bench.timing import Step
from gradsieve.bench.workload import MOMENTUM, RATE, Workload
from gradsieve.flow import Engine, Flow, propagate
from gradsieve.recipe import Recipe, Sieve
from gradsieve.training import Stepper

# dS at every update, whatever Q is: the most that the policy "skip" can cost.
ALWAYS = Sieve("skip", q_range=(-1e6, 1e6), max_change=1e6)


def training_step(workload: Workload, sieve: Sieve | None, engine: Engine = "native") -> Step:
    """One update by the training loop's own stepper."""
    recipe = Recipe(sieve=sieve).replaced(learning_rate=RATE, momentum=MOMENTUM)
    stepper = Stepper(workload.net.copy(), recipe, engine)

    def step() -> float | None:
        return stepper.step(workload.u, workload.t, None).verdict.relative

    return step


def kernel_only(workload: Workload, full: bool = False) -> Step:
    """What a step asks of the kernel: the rest is the loop's own Python."""
    flow: Flow | None = None
    update = workload.net.like(1e-6 * workload.net.flat)

    def step() -> None:
        nonlocal flow
        flow = propagate(workload.net, workload.u, workload.t, None, "native", flow)
        flow.norms(None, flow.length - 1, "full")
        if full:
            flow.norms(update, flow.length - 1, "full")

    return step


def own_steps(workload: Workload) -> dict[str, Step]:
    """Plain, frozen and full with the kernel and with the NumPy reference."""
    frozen = replace(ALWAYS, estimator="frozen")
    return {
        "gradsieve plain": training_step(workload, None),
        "gradsieve frozen": training_step(workload, frozen),
        "gradsieve full": training_step(workload, ALWAYS),
        "kernel plain": kernel_only(workload),
        "kernel full": kernel_only(workload, full=True),
        "reference plain": training_step(workload, None, "reference"),
        "reference frozen": training_step(workload, frozen, "reference"),
        "reference full": training_step(workload, ALWAYS, "reference"),
    }
