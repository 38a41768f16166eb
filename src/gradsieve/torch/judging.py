"""The verdict on one update, for all recurrent modules of a model.

Q needs only the step's own gradient and is always measured. dS needs the update and costs more:
it is predicted where the verdict depends on it (`gradsieve.sieve.Sieve.needs_change`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.optim import Optimizer

from gradsieve.change import NormChange, summarise
from gradsieve.flow import Norms
from gradsieve.sieve import TOO_LARGE, Sieve, Verdict
from gradsieve.torch import measure
from gradsieve.torch.memory import Memory
from gradsieve.torch.record import Call, sequences
from gradsieve.torch.recursion import Deltas
from gradsieve.torch.rollback import moving_parameters
from gradsieve.torch.slow import SlowSum, slow_sum
from gradsieve.torch.stack import Stack
from gradsieve.torch.transport import StackWeights, Transport, own_direction

TOO_SHORT = "not judged: no sequence is longer than the horizon"
NO_GRADIENT = "not judged: no gradient at the recurrent products"


@dataclass
class Evidence:
    """One module's calls since the last step: their transports, deltas and the Q of the policy."""

    stack: Stack
    weights: StackWeights  # as they were before the update
    transports: list[Transport]
    deltas: list[list[list[list[Deltas | None]]]]  # by call, carrier, layer, direction
    norms: Norms
    count: int  # of examples, over all processes
    slow: SlowSum | None  # for the policy "hold"

    @property
    def measured(self) -> NormChange:
        """S and Q, which is that of the slow gradient under "hold"; nothing is predicted yet."""
        found = summarise(self.norms)
        Q = found.Q if self.slow is None else self.slow.Q
        return NormChange(found.S, math.nan, math.nan, Q, math.nan)

    @property
    def unjudged(self) -> str | None:
        """Why there can be no verdict, or None."""
        if self.count == 0:
            return TOO_SHORT
        return NO_GRADIENT if self.norms.near_norm == 0 else None


def gather(
    stack: Stack,
    calls: list[Call],
    sieve: Sieve,
    together: bool,
    memory: Memory | None = None,
) -> Evidence:
    """Carry each call's last gradient back and measure its two ends, or what of it is slow."""
    with torch.no_grad():
        weights = detached(stack.weights())
        like = weights[0][0]["weight_hh"]
        transports = [
            Transport(stack, weights, sequences(stack, call, like), memory) for call in calls
        ]
        deltas = [[t.deltas(carrier) for carrier in t.carriers] for t in transports]
        found = _ends(stack, transports, deltas, None, sieve.horizon)
        count = torch.tensor(found.count)
        if together:
            torch.distributed.all_reduce(count)
        norms = measure.norms(found, together)
        slow = _slow(transports, deltas, sieve, together) if sieve.policy == "hold" else None
    return Evidence(stack, weights, transports, deltas, norms, int(count), slow)


def predict(evidence: Evidence, sieve: Sieve, together: bool) -> NormChange:
    """S, dS, Q and dQ along the change that the optimizer's step has made to the weights."""
    with torch.no_grad():
        update = _difference(detached(evidence.stack.weights()), evidence.weights)
        changes = [
            [
                transport.changes(carrier, deltas, update, sieve.estimator)
                for carrier, deltas in zip(transport.carriers, known, strict=True)
            ]
            for transport, known in zip(evidence.transports, evidence.deltas, strict=True)
        ]
        found = _ends(evidence.stack, evidence.transports, evidence.deltas, changes, sieve.horizon)
        return summarise(measure.norms(found, together))


def too_large(evidence: Evidence, sieve: Sieve, together: bool) -> Verdict | None:
    """A refusal, if the step as it now stands changes the far norm by more than `max_change`."""
    if evidence.unjudged or sieve.max_change is None:
        return None
    change = predict(evidence, sieve, together)
    if not abs(change.relative) > sieve.max_change:
        return None
    return Verdict(False, TOO_LARGE, evidence.measured.Q, change.dS, change.relative)


def overall(verdicts: Mapping[str, Verdict], sieve: Sieve) -> Verdict:
    """An update is kept if every module keeps it; the verdict shown is the most telling one."""
    refused = [verdict for verdict in verdicts.values() if not verdict.keep]
    return max(refused or verdicts.values(), key=lambda verdict: _distance(verdict.Q, sieve))


def _distance(Q: float, sieve: Sieve) -> float:
    lowest, highest = sieve.q_range
    return -math.inf if math.isnan(Q) else max(lowest - Q, Q - highest)


def _ends(
    stack: Stack,
    transports: list[Transport],
    deltas: list[list[list[list[Deltas | None]]]],
    changes: list[list[list[Deltas]]] | None,
    horizon: int | None,
) -> measure.Ends:
    parts = [measure.no_ends(stack.layers)]
    for index, transport in enumerate(transports):
        for number, carrier in enumerate(transport.carriers):
            own = own_direction(carrier, deltas[index][number])
            moved = None if changes is None else changes[index][number]
            parts.append(measure.ends(carrier, own, moved, horizon))
    return measure.joined(parts)


def _slow(
    transports: list[Transport],
    deltas: list[list[list[list[Deltas | None]]]],
    sieve: Sieve,
    together: bool,
) -> SlowSum:
    total = SlowSum()
    for transport, known in zip(transports, deltas, strict=True):
        for carrier, rows in zip(transport.carriers, known, strict=True):
            own = own_direction(carrier, rows)
            total += slow_sum(carrier, own, sieve.horizon, sieve.window)
    return total.over_processes() if together else total


def detached(weights: StackWeights) -> StackWeights:
    """Copies: an optimizer changes the parameters in place."""
    return [
        [{name: w.detach().clone() for name, w in one.items()} for one in row] for row in weights
    ]


def _difference(after: StackWeights, before: StackWeights) -> StackWeights:
    return [
        [{name: one[name] - old[name] for name in one} for one, old in zip(row, olds, strict=True)]
        for row, olds in zip(after, before, strict=True)
    ]


def finite_gradients(optimizer: Optimizer) -> bool:
    """Whether a step by these gradients may be made at all."""
    gradients = [p.grad for p in moving_parameters(optimizer) if p.grad is not None]
    if not gradients:
        return True
    # One pass without a temporary; a finite sum has no value that is not.
    total = gradients[0].sum()
    for gradient in gradients[1:]:
        total = total + gradient.sum().to(total.device)
    return bool(torch.isfinite(total)) or all(bool(torch.isfinite(g).all()) for g in gradients)
