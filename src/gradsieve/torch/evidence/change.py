"""What an update of the weights does to the deltas, to first order.

`full` is the derivative of everything below γ along the weights' change; `frozen` holds every
local Jacobian fixed and moves only the weights that the gradient is multiplied by (Lemma 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradsieve.torch import kernel_bridge
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.forward import multiply, sum_of_products
from gradsieve.torch.evidence.local import Local, Pulled
from gradsieve.torch.evidence.recursion import Added, Deltas, Scaled, pull_back, push_forward
from gradsieve.torch.evidence.transport import Reached, Transport, own_direction
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.stack import Place, StackWeights


@dataclass(frozen=True)
class Push:
    """The changes of one layer's products and states along the update."""

    da: Tensor
    dafter: State
    dx: Tensor | None = None  # None where da holds both (a joint cell)

    def before(self, part: int) -> Tensor:
        """The change of one part of s(0) … s(T−1)."""
        after = self.dafter[part]
        return torch.cat([torch.zeros_like(after[:1]), after[:-1]])


class Change:
    """One update, along which the deltas of a transport are differentiated."""

    def __init__(self, transport: Transport, update: StackWeights, frozen: bool) -> None:
        self.transport = transport
        self.update = update
        self._by_kernel = None if frozen else transport.one_tanh_layer
        nothing = frozen or self._by_kernel is not None
        self._pushed = {} if nothing else _pushed(transport, update)

    def of(self, carrier: Carrier, deltas: Reached) -> list[Deltas]:
        """By layer, the change of a carrier's deltas in its direction, in the deltas' units."""
        if self._by_kernel is not None:
            return [self._of_one_tanh_layer(deltas[Place(0, 0)])]
        transport = self.transport
        changes: Reached = {}
        from_above: dict[Place, Scaled] = {}
        for level in reversed(range(transport.stack.layers)):
            for place in transport.stack.level(level):
                if place in deltas:
                    local, known = transport.layers[place], deltas[place]
                    changes[place] = pull_back(
                        local,
                        local.run.weights["weight_hh"],
                        from_above.get(place),
                        self._added(place, known),
                        known.exponents,
                        keep_g=not local.run.cell.joint,  # read where it is handed down
                    )
            if level:
                from_above = transport.handed_down(
                    level,
                    deltas,
                    lambda place, known: self._by_inputs(place, known, changes[place]),
                )
        return own_direction(carrier, changes)

    def _of_one_tanh_layer(self, known: Deltas) -> Deltas:
        assert self._by_kernel is not None
        run = self._by_kernel.run
        change = kernel_bridge.tanh_change(
            kernel_bridge.TanhRun(
                run.u,
                run.after[0],
                run.before[0][0],
                run.weights["weight_hh"],
                known.delta,
                known.exponents,
            ),
            self.update[Place(0, 0)],
            run.memory,
        )
        return Deltas(change.unsqueeze(-2), (), known.exponents)

    def _added(self, place: Place, known: Deltas) -> Added:
        local = self.transport.layers[place]
        after = local.run.after
        through = local.run.memory.empty(after[0].shape, after[0])
        rows = known.delta.flatten(-2).flatten(0, 1)
        multiply(through.flatten(0, 1), rows, self.update[place]["weight_hh"])
        states: list[Tensor | None] = [through] + [None] * (len(after) - 1)
        bent = self._bent(local, place, known)
        if bent is None:
            return Added(None, states)
        states = [
            more if old is None else old if more is None else old + more
            for old, more in zip(states, bent.state, strict=True)
        ]
        return Added(bent.a, states)

    def _bent(self, local: Local, place: Place, known: Deltas) -> Pulled | None:
        """What the change of the Jacobians adds; None under `frozen`."""
        pushed = self._pushed.get(place)
        if pushed is None:
            return None
        extra = cells.beyond_linear(self.update[place])
        return local.bend(known.g, pushed.dx, pushed.da, pushed.before, extra)

    def _by_inputs(self, place: Place, known: Deltas, change: Deltas) -> Tensor:
        """The change of ∂/∂(inputs) of a layer."""
        local = self.transport.layers[place]
        if local.run.cell.joint:
            by_x, dby_x = known.delta, change.delta
        else:
            by_x, dby_x = local.pull(known.g).x, local.pull(change.g).x
            bent = self._bent(local, place, known)
            dby_x = dby_x if bent is None else dby_x + bent.x
        return (
            dby_x.flatten(-2) @ local.run.weights["weight_ih"]
            + by_x.flatten(-2) @ self.update[place]["weight_ih"]
        )


def _pushed(transport: Transport, update: StackWeights) -> dict[Place, Push]:
    """The change of every state along the update, level by level; the inputs are held."""
    stack = transport.stack
    gates = len(stack.cell.gates)
    du: Tensor | None = None
    pushed: dict[Place, Push] = {}
    for level in range(stack.layers):
        for place in stack.level(level):
            local, change = transport.layers[place], update[place]
            run = local.run
            extra = cells.beyond_linear(change)
            through = None
            if du is not None:
                own = transport.own_time(du, place.direction)
                through = cells.in_blocks(own @ run.weights["weight_ih"].T, gates)
            R, dx = None, None
            if run.cell.joint and not extra:
                explicit = sum_of_products(run.u, run.before[0], change, gates, run.memory)
                explicit = explicit if through is None else explicit.add_(through)
            else:
                explicit = cells.recur(run.before[0], change, gates)
                dx = cells.drive(run.u, change, gates)
                dx = dx if through is None else dx + through
                R = local.push(dx, extra)
            da, dafter = push_forward(local, run.weights["weight_hh"], explicit, R)
            pushed[place] = Push(da, dafter, dx)
        du = transport.side_by_side(lambda place: pushed[place].dafter[0], level)
    return pushed
