"""The gradient of Q by the weights, by double backward through an unfused cell.

It is asked for only where Q is out of range under the policy "steer". The call
is run again step by step with a graph, in float64 so that vanished deltas are still numbers:
δ = ∂⟨γ, h(last)⟩/∂a is one backward, and ∂Q/∂w the second.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradsieve.flow import Norms
from gradsieve.torch import cells
from gradsieve.torch.cells import State
from gradsieve.torch.forward import in_own_time
from gradsieve.torch.measure import far_steps
from gradsieve.torch.stack import LayerWeights
from gradsieve.torch.transport import Carrier, StackWeights, Transport

WIDE = torch.float64


def q_gradient(
    transports: list[Transport], totals: Norms, horizon: int | None, together: bool
) -> list[Tensor]:
    """∂Q/∂(parameter) for the parameters of the module whose calls these are."""
    stack = transports[0].stack
    parameters = stack.parameters()
    near = math.ldexp(totals.near_norm, totals.near_exponent)
    far = math.ldexp(totals.far_norm, totals.far_exponent)
    gradients = [torch.zeros_like(parameter) for parameter in parameters]
    for transport in transports if near > 0 and far > 0 else []:
        with torch.enable_grad():
            # ∂ log10(near/far) = (∂near/near − ∂far/far)/ln 10, where near and far are sums over
            # all calls and processes of which this call is one.
            share = _share(transport, horizon, near, far)
            found = torch.autograd.grad(share, parameters, allow_unused=True)
        gradients = [
            old if new is None else old + new for old, new in zip(gradients, found, strict=True)
        ]
    if together:
        for gradient in gradients:
            torch.distributed.all_reduce(gradient)
    return gradients


def _share(transport: Transport, horizon: int | None, near: float, far: float) -> Tensor:
    weights = _widened(transport.stack.weights())
    products, after = _run(transport, weights)
    total = torch.zeros((), dtype=WIDE, device=after[0][0][0].device)
    for carrier in transport.carriers:
        ends = _end_norms(carrier, products, after, horizon)
        total = total + (ends[0] / near - ends[1] / far) / math.log(10)
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


def _end_norms(
    carrier: Carrier,
    products: list[list[list[Tensor]]],
    after: list[list[State]],
    horizon: int | None,
) -> tuple[Tensor, Tensor]:
    """Σ‖δ(T)‖ and Σ‖δ(T−h)‖ of one carrier, with a graph."""
    direction = carrier.direction
    surrogate = torch.stack(
        [
            (state * injected.to(WIDE)).sum()
            for row, entering in zip(after, carrier.injected, strict=True)
            for state, injected in zip(row[direction], entering, strict=True)
        ]
    ).sum()
    far, usable = far_steps(carrier, horizon)
    examples = torch.arange(far.shape[0], device=far.device)[usable]
    nodes = [node for row in products for node in row[direction]]
    found = torch.autograd.grad(surrogate, nodes, create_graph=True, materialize_grads=True)
    steps = len(products[0][direction])
    layers = [torch.stack(found[start : start + steps]) for start in range(0, len(found), steps)]

    def norm_at(step: Tensor) -> Tensor:
        return _norms(torch.cat([d[step[usable], examples].flatten(1) for d in layers], 1)).sum()

    return norm_at(carrier.last), norm_at(far)


def _norms(deltas: Tensor) -> Tensor:
    """Euclidean norms whose squares do not underflow; a zero delta has norm and gradient zero."""
    largest = deltas.detach().abs().amax(1, keepdim=True)
    some = largest > 0
    unit = torch.where(some, deltas / torch.where(some, largest, 1.0), 1.0)
    return torch.where(some.squeeze(1), unit.square().sum(1).sqrt() * largest.squeeze(1), 0.0)
