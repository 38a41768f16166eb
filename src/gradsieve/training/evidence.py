"""The evidence that a policy asks for, from a flow and a proposed update."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gradsieve import kernel
from gradsieve.change import (
    example_contributions,
    norm_change,
    norm_gradient,
    q_factor,
    slow_factor,
    slow_gradient,
)
from gradsieve.flow import Flow
from gradsieve.network import SRN, Array, Weights
from gradsieve.sieve import Evidence, Need, Policy, Slope
from gradsieve.training.descent import Descent


def measured_Q(flow: Flow, policy: Policy | None) -> float:
    """Q by the policy's measure; without a policy Eq. 14's. One step has no far gradient: NaN."""
    if flow.length < 2:
        return math.nan
    if policy is None:
        return q_factor(flow)
    sieve = policy.sieve
    if policy.measure == "slow Q":
        return slow_factor(flow, sieve.horizon, sieve.window)
    return q_factor(flow, sieve.horizon)


def cosine(net: SRN, gradient: Array, before: Array) -> float:
    """The cosine of two gradients, over the weights that a correction may move; NaN where one is 0.

    Each is divided by its length first, so that no square underflows.
    """
    count = gradient.size - net.w_out.size - net.b_out.size
    one, other = gradient[:count], before[:count]
    lengths = kernel.norm(one), kernel.norm(other)
    if not all(0 < length < math.inf for length in lengths):
        return math.nan
    return inner(one / lengths[0], other / lengths[1])


def complete(
    policy: Policy, evidence: Evidence, flow: Flow, proposal: Array, descent: Descent
) -> tuple[Evidence, Weights | None]:
    """The evidence with all that the policy needs beside Q, and the slope of a correction."""
    sieve, need = policy.sieve, policy.need(evidence)
    if need is Need.CHANGE:
        update = flow.net.like(proposal)
        change = norm_change(flow, update, sieve.horizon, sieve.estimator)
        return replace(evidence, change=change), None
    if need is Need.CONTRIBUTIONS:
        shares = example_contributions(flow, descent.learning_rate, sieve.horizon, sieve.estimator)
        return replace(evidence, contributions=tuple(shares.tolist())), None
    if need is Need.SLOPE:
        slope = (
            slow_gradient(flow, sieve.horizon, sieve.window)
            if policy.measure == "slow Q"
            else norm_gradient(flow, sieve.horizon, "Q")
        )
        along = inner(slope.flat, proposal)
        slope.w_out[:] = 0  # corrected are the weights that carry the gradient back in time
        slope.b_out[:] = 0
        length = descent.fresh_length(proposal.size - slope.w_out.size - slope.b_out.size)
        found = Slope(along, inner(slope.flat, slope.flat), length)
        return replace(evidence, slope=found), slope
    return evidence, None


def inner(left: Array, right: Array) -> float:
    """The inner product. Not `np.dot`, whose last bits depend on how many threads BLAS has."""
    return float(np.einsum("i,i->", left, right))
