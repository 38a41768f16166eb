"""The gradient of Q by the weights: by double backward through an unfused cell, or by the kernel.

It is asked for only where Q is out of range under the policies "steer" and "hold". The call is run
again step by step with a graph, in float64 so that vanished deltas are still numbers:
δ = ∂⟨γ, h(last)⟩/∂a is one backward, and ∂Q/∂w the second. What the kernel can do itself, the slow
Q of one tanh layer, it does in a tenth of that time (`tanh_slow`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from gradsieve.sieve import Sieve
from gradsieve.torch import cells, tanh_slow
from gradsieve.torch.cells import State
from gradsieve.torch.forward import in_own_time
from gradsieve.torch.judging import Evidence
from gradsieve.torch.measure import far_steps
from gradsieve.torch.slow import window_weights
from gradsieve.torch.stack import LayerWeights
from gradsieve.torch.transport import Carrier, StackWeights, Transport

WIDE = torch.float64
Share = Callable[[Carrier, Tensor], Tensor]  # of a carrier and its deltas, (T,B,·)


def q_gradient(evidence: Evidence, sieve: Sieve, together: bool) -> list[Tensor]:
    """∂Q/∂(parameter) for the parameters of one module; of the slow Q under "hold"."""
    parameters = evidence.stack.parameters()
    if sieve.policy == "hold" and not together and len(evidence.transports) == 1:
        (transport,) = evidence.transports
        if tanh_slow.usable(transport):
            return _by_parameters(transport, tanh_slow.slow_slopes(transport, sieve), parameters)
    share = _share(evidence, sieve)
    gradients = [torch.zeros_like(parameter) for parameter in parameters]
    if share is not None:
        for transport in evidence.transports:
            with torch.enable_grad():
                found = torch.autograd.grad(_sum(transport, share), parameters, allow_unused=True)
            gradients = [
                old if new is None else old + new for old, new in zip(gradients, found, strict=True)
            ]
    if together:
        for gradient in gradients:
            torch.distributed.all_reduce(gradient)
    return gradients


def _by_parameters(
    transport: Transport, slopes: LayerWeights, parameters: list[nn.Parameter]
) -> list[Tensor]:
    """From the layer's weights to the parameters that they are, or are computed from."""
    ((weights,),) = transport.stack.weights()
    names = [name for name in slopes if weights[name].requires_grad]
    found = torch.autograd.grad(
        [weights[name] for name in names],
        parameters,
        [slopes[name] for name in names],
        allow_unused=True,
        materialize_grads=True,
    )
    return list(found)


def _share(evidence: Evidence, sieve: Sieve) -> Share | None:
    """What one carrier adds to Q, to first order; None where Q has no derivative.

    Q is of sums over all calls, directions and processes, of which each carrier is a part. They are
    known, so that the parts can be differentiated one by one.
    """
    if evidence.slow is not None:
        return _slow_share(sieve, evidence.slow.count) if evidence.slow.count else None
    totals = evidence.norms
    near = math.ldexp(totals.near_norm, totals.near_exponent)
    far = math.ldexp(totals.far_norm, totals.far_exponent)
    return _ends_share(sieve, near, far) if near > 0 and far > 0 else None


def _ends_share(sieve: Sieve, near: float, far: float) -> Share:
    """∂ log10(near/far) = (∂near/near − ∂far/far)/ln 10."""

    def share(carrier: Carrier, deltas: Tensor) -> Tensor:
        far_step, usable = far_steps(carrier, sieve.horizon)
        near_norms = _norms(_at(deltas, carrier.last, usable))
        far_norms = _norms(_at(deltas, far_step, usable))
        return (near_norms.sum() / near - far_norms.sum() / far) / math.log(10)

    return share


def _slow_share(sieve: Sieve, count: int) -> Share:
    """∂ mean log10(‖δ(last)‖/‖s‖), the mean over the examples that count."""

    def share(carrier: Carrier, deltas: Tensor) -> Tensor:
        usable = far_steps(carrier, sieve.horizon)[1]
        weights = window_weights(carrier, sieve.horizon, sieve.window)
        slow = torch.einsum("nb,nbk->bk", torch.from_numpy(weights).to(deltas.device), deltas)
        near_norms = _norms(_at(deltas, carrier.last, usable))
        slow_norms = _norms(slow[usable])
        counts = (near_norms > 0) & (slow_norms > 0)
        return (near_norms[counts].log10() - slow_norms[counts].log10()).sum() / count

    return share


def _at(deltas: Tensor, step: Tensor, usable: Tensor) -> Tensor:
    """(N,·): the deltas of the usable examples, each at its own step."""
    examples = torch.arange(step.shape[0], device=step.device)[usable]
    return deltas[step[usable], examples]


def _sum(transport: Transport, share: Share) -> Tensor:
    """The shares of all carriers of one call, with a graph."""
    products, after = _run(transport, _widened(transport.stack.weights()))
    total = torch.zeros((), dtype=WIDE, device=after[0][0][0].device)
    for carrier in transport.carriers:
        total = total + share(carrier, _deltas(carrier, products, after))
    return total


def _widened(weights: StackWeights) -> StackWeights:
    return [[{name: w.to(WIDE) for name, w in one.items()} for one in row] for row in weights]


def _run(
    transport: Transport, weights: StackWeights
) -> tuple[list[list[list[Tensor]]], list[list[State]]]:
    """a(1)…a(T) as separate nodes of the graph, and the states after each step, by layer."""
    lengths, u = transport.sequences.lengths, transport.sequences.inputs.to(WIDE)
    products: list[list[list[Tensor]]] = []
    after: list[list[State]] = []
    for row, initial in zip(weights, transport.sequences.initial, strict=True):
        runs = [
            _run_layer(transport, one, in_own_time(u, direction, lengths), state)
            for direction, (one, state) in enumerate(zip(row, initial, strict=True))
        ]
        products.append([run[0] for run in runs])
        after.append([run[1] for run in runs])
        u = torch.cat(
            [in_own_time(run[1][0], direction, lengths) for direction, run in enumerate(runs)], -1
        )
    return products, after


def _run_layer(
    transport: Transport, weights: LayerWeights, u: Tensor, initial: State
) -> tuple[list[Tensor], State]:
    cell = transport.stack.cell
    extra = cells.beyond_linear(weights)
    state = tuple(part.to(WIDE) for part in initial)
    products, states = [], []
    for x in cells.drive(u, weights, len(cell.gates)).unbind(0):
        products.append(cells.recur(state[0], weights, len(cell.gates)))
        state = cell.update(x, products[-1], state, extra)
        states.append(state)
    return products, tuple(torch.stack(part) for part in zip(*states, strict=True))


def _deltas(
    carrier: Carrier, products: list[list[list[Tensor]]], after: list[list[State]]
) -> Tensor:
    """δ(1) … δ(T) of one carrier, (T,B,·), all layers side by side, with a graph."""
    direction = carrier.direction
    surrogate = torch.stack(
        [
            (state * injected.to(WIDE)).sum()
            for row, entering in zip(after, carrier.injected, strict=True)
            for state, injected in zip(row[direction], entering, strict=True)
        ]
    ).sum()
    nodes = [node for row in products for node in row[direction]]
    found = torch.autograd.grad(surrogate, nodes, create_graph=True, materialize_grads=True)
    steps = len(products[0][direction])
    layers = [torch.stack(found[start : start + steps]) for start in range(0, len(found), steps)]
    return torch.cat([layer.flatten(2) for layer in layers], 2)


def _norms(deltas: Tensor) -> Tensor:
    """Euclidean norms whose squares do not underflow; a zero delta has norm and gradient zero."""
    largest = deltas.detach().abs().amax(1, keepdim=True)
    some = largest > 0
    unit = torch.where(some, deltas / torch.where(some, largest, 1.0), 1.0)
    return torch.where(some.squeeze(1), unit.square().sum(1).sqrt() * largest.squeeze(1), 0.0)
