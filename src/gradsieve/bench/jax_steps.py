"""The same step in JAX: `lax.scan`, jitted; frozen dS as a scan, full dS by forward mode."""

from __future__ import annotations

import importlib
import os
from typing import Any

from gradsieve.bench.timing import Step
from gradsieve.bench.workload import MOMENTUM, RATE, Workload


def jax_steps(workload: Workload) -> dict[str, Step]:
    """Plain, frozen and full, compiled, on one thread."""
    os.environ.setdefault(
        "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    )
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")

    net = workload.net
    u, t = jnp.asarray(workload.u), jnp.asarray(workload.t)
    start = {name: jnp.asarray(value) for name, value in net.fields().items()}

    def states_of(weights: dict[str, Any]) -> Any:
        def forward(z: Any, now: Any) -> tuple[Any, Any]:
            z = jnp.tanh(now @ weights["w_in"] + z @ weights["w_rec"] + weights["b"])
            return z, z

        return jax.lax.scan(forward, jnp.zeros((u.shape[1], net.hidden), u.dtype), u)

    def loss(weights: dict[str, Any]) -> Any:
        last, _ = states_of(weights)
        log_p = jax.nn.log_softmax(last @ weights["w_out"] + weights["b_out"])
        return -jnp.take_along_axis(log_p, t[:, None], axis=1).sum()

    def far_square(weights: dict[str, Any]) -> Any:
        """S, with delta carried back by its own recursion."""
        last, states = states_of(weights)
        y = last @ weights["w_out"] + weights["b_out"]
        error = jax.nn.softmax(y) - jax.nn.one_hot(t, net.outputs)
        delta = (error @ weights["w_out"].T) * (1 - last**2)

        def backward(delta: Any, z: Any) -> tuple[Any, None]:
            return (delta @ weights["w_rec"].T) * (1 - z**2), None

        far, _ = jax.lax.scan(backward, delta, states[:-1], reverse=True)
        return 0.5 * (far**2).sum()

    def frozen_change(weights: dict[str, Any], proposal: dict[str, Any]) -> Any:
        """dS/(2S) with the slopes held fixed: delta and ddelta carried back together."""
        last, states = states_of(weights)
        y = last @ weights["w_out"] + weights["b_out"]
        error = jax.nn.softmax(y) - jax.nn.one_hot(t, net.outputs)
        delta = (error @ weights["w_out"].T) * (1 - last**2)

        def backward(carried: Any, z: Any) -> tuple[Any, None]:
            delta, ddelta = carried
            change = ddelta @ weights["w_rec"].T + delta @ proposal["w_rec"].T
            slope = 1 - z**2
            return ((delta @ weights["w_rec"].T) * slope, change * slope), None

        start = (delta, jnp.zeros_like(delta))
        (far, change), _ = jax.lax.scan(backward, start, states[:-1], reverse=True)
        return (far * change).sum() / (far**2).sum()

    def propose(weights: Any, velocity: Any) -> Any:
        gradient = jax.grad(loss)(weights)
        return jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)

    def plain(weights: Any, velocity: Any) -> Any:
        proposal = propose(weights, velocity)
        return jax.tree.map(jnp.add, weights, proposal), proposal, jnp.nan

    def frozen(weights: Any, velocity: Any) -> Any:
        proposal = propose(weights, velocity)
        relative = frozen_change(weights, proposal)
        return jax.tree.map(jnp.add, weights, proposal), proposal, relative

    def full(weights: Any, velocity: Any) -> Any:
        proposal = propose(weights, velocity)
        S, dS = jax.jvp(far_square, (weights,), (proposal,))
        return jax.tree.map(jnp.add, weights, proposal), proposal, dS / (2 * S)

    def stepping(compiled: Any) -> Step:
        state = [start, jax.tree.map(jnp.zeros_like, start)]

        def step() -> float:
            state[0], state[1], relative = jax.block_until_ready(compiled(*state))
            return float(relative)

        return step

    kinds = {"plain": plain, "frozen": frozen, "full": full}
    return {f"JAX {kind}": stepping(jax.jit(function)) for kind, function in kinds.items()}
