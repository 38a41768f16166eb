"""One layer in one direction, linearised, on the way of one carrier: what judging asks of it.

`PythonLayer` serves any cell and any device; `kernel_layer.KernelLayer` does the same faster for
tanh, relu, GRU and LSTM on the CPU. Both do at most one way back at a time, and one change of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.local import Local, Pulled
from gradsieve.torch.evidence.recursion import Added, Deltas, Scaled, add, pull_back, push_forward
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.stack import LayerWeights, Place


class LinearLayer(Protocol):
    """See the module. `above` is ∂/∂(outputs), or its change, where a layer stands above."""

    deltas: Deltas  # of `reach`
    changed: Deltas  # of `change`, in the same units

    def reach(self, carrier: Carrier, place: Place, above: Scaled | None) -> None:
        """Carry γ, and what comes from above, back through time."""
        ...

    def by_inputs(self) -> Tensor:
        """∂/∂(inputs), (T,B,I), in the deltas' units."""
        ...

    def push(self, update: LayerWeights, below: Tensor | None) -> Tensor:
        """The change of the outputs along an update of the weights and a change of the inputs."""
        ...

    def change(self, update: LayerWeights, above: Scaled | None) -> None:
        """The change of the deltas along the update; before `push`, with all Jacobians held."""
        ...

    def change_by_inputs(self, update: LayerWeights) -> Tensor:
        """The change of `by_inputs`."""
        ...


@dataclass(frozen=True)
class _Push:
    """The changes of one layer's products, and of the states before, along an update."""

    dx: Tensor
    da: Tensor
    before: State


class PythonLayer:
    """Readable, for any cell and device: autograd's Jacobians and recursion.py."""

    deltas: Deltas
    changed: Deltas

    def __init__(self, local: Local) -> None:
        self.local = local
        self._pushed: _Push | None = None
        self._bent: Pulled | None = None

    @property
    def _weights(self) -> LayerWeights:
        return self.local.run.weights

    def reach(self, carrier: Carrier, place: Place, above: Scaled | None) -> None:
        entering = above
        if place.direction == carrier.direction:
            parts = carrier.injected(place.layer)
            own = Scaled(parts, torch.zeros_like(parts[0][..., 0], dtype=torch.int32))
            entering = own if above is None else add(own, self._as_state(above))
        elif above is not None:
            entering = self._as_state(above)
        self.deltas = pull_back(self.local, self._weights["weight_hh"], entering)

    def _as_state(self, above: Scaled) -> Scaled:
        rest = tuple(torch.zeros_like(part) for part in self.local.run.after[1:])
        return Scaled((*above.parts, *rest), above.exponents)

    def by_inputs(self) -> Tensor:
        return self.local.pull(self.deltas.g).x.flatten(-2) @ self._weights["weight_ih"]

    def push(self, update: LayerWeights, below: Tensor | None) -> Tensor:
        run, gates = self.local.run, len(self.local.run.cell.gates)
        dx = cells.drive(run.u, update, gates)
        if below is not None:
            dx = dx + cells.in_blocks(below @ self._weights["weight_ih"].T, gates)
        explicit = cells.recur(run.before[0], update, gates)
        R = self.local.push(dx, cells.beyond_linear(update))
        da, after = push_forward(self.local, self._weights["weight_hh"], explicit, R)
        before = tuple(torch.cat([torch.zeros_like(one[:1]), one[:-1]]) for one in after)
        self._pushed = _Push(dx, da, before)
        return after[0]

    def change(self, update: LayerWeights, above: Scaled | None) -> None:
        states: list[Tensor | None] = [None] * len(self.local.run.after)
        states[0] = self.deltas.delta.flatten(-2) @ update["weight_hh"]
        added = Added(None, states)
        if self._pushed is not None:
            push, extra = self._pushed, cells.beyond_linear(update)
            self._bent = self.local.bend(self.deltas.g, push.dx, push.da, push.before, extra)
            added = Added(
                self._bent.a,
                [
                    old if more is None else more if old is None else old + more
                    for old, more in zip(states, self._bent.state, strict=True)
                ],
            )
        entering = None if above is None else self._as_state(above)
        weight, units = self._weights["weight_hh"], self.deltas.exponents
        self.changed = pull_back(self.local, weight, entering, added, units)

    def change_by_inputs(self, update: LayerWeights) -> Tensor:
        dby_x, by_x = self.local.pull(self.changed.g).x, self.local.pull(self.deltas.g).x
        if self._bent is not None:
            dby_x = dby_x + self._bent.x
        return dby_x.flatten(-2) @ self._weights["weight_ih"] + (
            by_x.flatten(-2) @ update["weight_ih"]
        )
