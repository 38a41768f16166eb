"""The gradient of Q by the weights of any cell, by double backward through its own equations.

The call is run again step by step with a graph, in float64 so that vanished deltas are still
numbers: δ = ∂⟨γ, h(last)⟩/∂a is one backward pass, and ∂Q/∂w the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsieve.sieve import Policy
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.forward import in_own_time
from gradsieve.torch.evidence.gather import Measured
from gradsieve.torch.evidence.slow import window_weights
from gradsieve.torch.evidence.transport import Transport
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import Cell, State
from gradsieve.torch.modules.stack import LayerWeights, Place, StackWeights

WIDE = torch.float64
Share = Callable[[Carrier, Tensor], Tensor]  # of a carrier and its deltas, (T,B,·)


def double_backward(transport: Transport, measured: Measured, policy: Policy) -> list[Tensor]:
    """What one call adds to ∂Q/∂(parameter); Q as the policy measures it."""
    parameters = measured.stack.parameters()
    share = _share(measured, policy)
    if share is None:
        return [torch.zeros_like(parameter) for parameter in parameters]
    with torch.enable_grad():
        found = torch.autograd.grad(
            _sum(transport, share), parameters, allow_unused=True, materialize_grads=True
        )
    return list(found)


def _share(measured: Measured, policy: Policy) -> Share | None:
    """What one carrier adds to Q, to first order; None where Q has no derivative.

    Q is of sums over all calls, directions and processes, of which each carrier is a part. They are
    known, so that the parts can be differentiated one by one.
    """
    horizon = policy.sieve.horizon
    if measured.slow is not None:
        count = measured.slow.count
        return _slow_share(horizon, policy.sieve.window, count) if count else None
    totals = measured.norms
    near = math.ldexp(totals.near_norm, totals.near_exponent)
    far = math.ldexp(totals.far_norm, totals.far_exponent)
    return _ends_share(horizon, near, far) if near > 0 and far > 0 else None


def _ends_share(horizon: int | None, near: float, far: float) -> Share:
    """∂ log10(near/far) = (∂near/near − ∂far/far)/ln 10."""

    def share(carrier: Carrier, deltas: Tensor) -> Tensor:
        far_step, usable = carrier.far_steps(horizon)
        near_norms = _norms(_at(deltas, carrier.last, usable))
        far_norms = _norms(_at(deltas, far_step, usable))
        return (near_norms.sum() / near - far_norms.sum() / far) / math.log(10)

    return share


def _slow_share(horizon: int | None, window: float, count: int) -> Share:
    """∂ mean log10(‖δ(last)‖/‖s‖), the mean over the examples that count."""

    def share(carrier: Carrier, deltas: Tensor) -> Tensor:
        usable = carrier.far_steps(horizon)[1]
        weights = window_weights(carrier, horizon, window)
        slow = torch.einsum("nb,nbk->bk", torch.tensor(weights, device=deltas.device), deltas)
        near_norms = _norms(_at(deltas, carrier.last, usable))
        slow_norms = _norms(slow[usable])
        counts = (near_norms > 0) & (slow_norms > 0)
        return (near_norms[counts].log10() - slow_norms[counts].log10()).sum() / count

    return share


def _at(deltas: Tensor, step: Tensor, usable: Tensor) -> Tensor:
    """(N,·): the deltas of the usable examples, each at its own step."""
    examples = torch.arange(step.shape[0], device=step.device)[usable]
    return deltas[step[usable], examples]


@dataclass(frozen=True)
class Written:
    """One layer in one direction, written out step by step with a graph."""

    products: list[Tensor]  # a(1) … a(T), each a node of the graph
    after: State  # s(1) … s(T)


def _sum(transport: Transport, share: Share) -> Tensor:
    """The shares of all carriers of one call, with a graph."""
    written = _written_out(transport, _widened(transport.stack.weights()))
    device = transport.sequences.inputs.device
    total = torch.zeros((), dtype=WIDE, device=device)
    for carrier in transport.carriers:
        total = total + share(carrier, _deltas(carrier, written))
    return total


def _widened(weights: StackWeights) -> StackWeights:
    return {
        place: {name: weight.to(WIDE) for name, weight in own.items()}
        for place, own in weights.items()
    }


def _written_out(transport: Transport, weights: StackWeights) -> dict[Place, Written]:
    given = transport.sequences
    u, written = given.inputs.to(WIDE), {}
    for level in range(transport.stack.layers):
        for place in transport.stack.level(level):
            own = in_own_time(u, place.direction, given.lengths)
            written[place] = _run_layer(
                transport.stack.cell, weights[place], own, given.initial[place]
            )
        u = transport.side_by_side(level, lambda place: written[place].after[0])
    return written


def _run_layer(cell: Cell, weights: LayerWeights, u: Tensor, initial: State) -> Written:
    extra = cells.beyond_linear(weights)
    state = tuple(part.to(WIDE) for part in initial)
    products, states = [], []
    for x in cells.drive(u, weights, len(cell.gates)).unbind(0):
        products.append(cells.recur(state[0], weights, len(cell.gates)))
        state = cell.update(x, products[-1], state, extra)
        states.append(state)
    return Written(products, tuple(torch.stack(part) for part in zip(*states, strict=True)))


def _deltas(carrier: Carrier, written: dict[Place, Written]) -> Tensor:
    """δ(1) … δ(T) of one carrier, (T,B,·), all layers side by side, with a graph."""
    own = [written[place] for place in sorted(written) if place.direction == carrier.direction]
    surrogate = torch.stack(
        [
            (state * injected.to(WIDE)).sum()
            for index, layer in enumerate(own)
            for state, injected in zip(layer.after, carrier.injected(index), strict=True)
        ]
    ).sum()
    nodes = [node for layer in own for node in layer.products]
    found = torch.autograd.grad(surrogate, nodes, create_graph=True, materialize_grads=True)
    steps = carrier.steps
    layers = [torch.stack(found[start : start + steps]) for start in range(0, len(found), steps)]
    return torch.cat([layer.flatten(2) for layer in layers], 2)


def _norms(deltas: Tensor) -> Tensor:
    """Euclidean norms whose squares do not underflow; a zero delta has norm and gradient zero."""
    largest = deltas.detach().abs().amax(1, keepdim=True)
    some = largest > 0
    unit = torch.where(some, deltas / torch.where(some, largest, 1.0), 1.0)
    return torch.where(some.squeeze(1), unit.square().sum(1).sqrt() * largest.squeeze(1), 0.0)
