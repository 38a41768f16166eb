"""The plain training step in JAX: one product for all inputs, `lax.scan` over time, jitted."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from gradsieve.bench.timing import Step
from gradsieve.bench.workload import GATES, MOMENTUM, RATE, Workload


def jax_steps(workload: Workload) -> dict[str, Step]:
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    cell, hidden = workload.size.cell, workload.size.hidden
    u, t = jnp.asarray(workload.u), jnp.asarray(workload.t)
    random = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return jnp.asarray(random.uniform(-1, 1, shape) / hidden**0.5, jnp.float32)

    width = GATES[cell] * hidden
    weights = {
        "ih": drawn(u.shape[2], width),
        "hh": drawn(hidden, width),
        "b_ih": drawn(width),
        "b_hh": drawn(width),
        "out": drawn(hidden, workload.net.outputs),
        "b_out": drawn(workload.net.outputs),
    }

    def tanh_cell(state: Any, x: Any, a: Any) -> Any:
        return (jnp.tanh(x + a),)

    def gru_cell(state: Any, x: Any, a: Any) -> Any:
        (x_r, x_z, x_n), (a_r, a_z, a_n) = (jnp.split(one, 3, axis=-1) for one in (x, a))
        z = jax.nn.sigmoid(x_z + a_z)
        new = jnp.tanh(x_n + jax.nn.sigmoid(x_r + a_r) * a_n)
        return ((1 - z) * new + z * state[0],)

    def lstm_cell(state: Any, x: Any, a: Any) -> Any:
        i, f, g, o = jnp.split(x + a, 4, axis=-1)
        c = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    advance = {"tanh": tanh_cell, "GRU": gru_cell, "LSTM": lstm_cell}[cell]

    def loss(weights: dict[str, Any]) -> Any:
        def forward(state: Any, x: Any) -> tuple[Any, None]:
            return advance(state, x, state[0] @ weights["hh"] + weights["b_hh"]), None

        zero = jnp.zeros((u.shape[1], hidden), u.dtype)
        start = (zero, zero) if cell == "LSTM" else (zero,)
        state, _ = jax.lax.scan(forward, start, u @ weights["ih"] + weights["b_ih"])
        log_p = jax.nn.log_softmax(state[0] @ weights["out"] + weights["b_out"])
        return -jnp.take_along_axis(log_p, t[:, None], axis=1).mean()

    @jax.jit  # type: ignore[untyped-decorator]
    def update(weights: Any, velocity: Any) -> Any:
        gradient = jax.grad(loss)(weights)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradient)
        return jax.tree.map(jnp.add, weights, velocity), velocity

    state = [weights, jax.tree.map(jnp.zeros_like, weights)]

    def step() -> None:
        state[:] = jax.block_until_ready(update(*state))

    return {"JAX plain": step}
