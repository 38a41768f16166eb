"""gradsieve's core: the very steps that its training loop takes, Python and all. A tanh network."""

from __future__ import annotations

from gradsieve.bench.timing import Step
from gradsieve.bench.workload import MOMENTUM, RATE, SIEVES, Workload
from gradsieve.flow import Flow, propagate
from gradsieve.recipe import Recipe, Sieve
from gradsieve.training import Stepper


def own_steps(workload: Workload) -> dict[str, Step]:
    """Plain, judged, corrected and predicted; and forward and backward alone, as `kernel`."""
    steps = {f"core {name}": _training_step(workload, name) for name in SIEVES}
    return {**steps, "kernel": _kernel_only(workload)}


def _training_step(workload: Workload, name: str) -> Step:
    settings = SIEVES[name]
    sieve = None if settings is None else Sieve(**settings)
    recipe = Recipe(sieve=sieve).replaced(learning_rate=RATE, momentum=MOMENTUM)
    stepper = Stepper(workload.net.copy(), recipe)
    return lambda: stepper.step(workload.u, workload.t, None)


def _kernel_only(workload: Workload) -> Step:
    flow: Flow | None = None

    def step() -> None:
        nonlocal flow
        flow = propagate(workload.net, workload.u, workload.t, None, "native", flow)

    return step
