"""Figure 1 of the paper: gradient norms against depth before training, for three variances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradsieve import tasks
from gradsieve.flow import Flow, backpropagate
from gradsieve.network import SRN, Array

VARIANCES = (0.01, 0.005, 0.02)
SEQUENCES = 1000
PART = 100  # sequences in one pass


@dataclass(frozen=True)
class InitialNorms:
    """Mean norms at depth 0 (the last step) … T−1, over networks and sequences."""

    variance: float
    delta: Array  # ‖δ(k)‖
    w_in: Array  # ‖Δw_in(k)‖ = ‖u(k)ᵀ δ(k)‖ of one sequence
    w_rec: Array  # ‖Δw_rec(k)‖ = ‖z(k−1)ᵀ δ(k)‖
    correlation_in: float  # of log10 ‖δ‖ with log10 ‖Δw_in‖ over networks, sequences and depth
    correlation_rec: float


def initial_norms(
    variance: float, length: int = 100, networks: int = 10, sequences: int = SEQUENCES
) -> InitialNorms:
    """Norms of networks 0 … on temporal order, as the paper draws them."""
    task = tasks.temporal_order(length=length)
    u, t = task.sample(sequences, seed=12345)
    collected: list[Array] = []
    flow: Flow | None = None
    for network in range(networks):
        net = SRN.random(task.inputs, 100, task.outputs, task.output, variance, network, np.float64)
        for start in range(0, sequences, PART):
            part = slice(start, start + PART)
            flow = backpropagate(net, u[:, part], t[part], reuse=flow)
            delta = np.linalg.norm(flow.deltas, axis=2)
            # The gradient of one step is an outer product: its norm is the product of two norms.
            w_in = np.linalg.norm(u[:, part], axis=2) * delta
            w_rec = np.linalg.norm(flow.states[:-1], axis=2) * delta
            collected.append(np.stack([delta, w_in, w_rec])[:, ::-1])
    norms = np.concatenate(collected, axis=2)
    delta, w_in, w_rec = norms.mean(axis=2)
    return InitialNorms(
        variance,
        delta,
        w_in,
        w_rec,
        log_correlation(norms[0], norms[1]),
        log_correlation(norms[0], norms[2]),
    )


def log_correlation(first: Array, second: Array) -> float:
    """Correlation of logarithms, where both are above zero (z(0) = 0 has no logarithm)."""
    usable = (first > 0) & (second > 0)
    return float(np.corrcoef(np.log10(first[usable]), np.log10(second[usable]))[0, 1])
