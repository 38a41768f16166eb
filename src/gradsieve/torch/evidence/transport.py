"""How far the gradient of the last step goes back through a stack of layers.

Theory and definitions: docs/theory-gated-cells.md. A carrier's γ, held as it is, is carried back
through all layers; δ(n) is the gradient at the recurrent products of its direction, all layers
together, n in that direction's own time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradsieve.torch.evidence.carrier import Carrier, find_carrier
from gradsieve.torch.evidence.forward import LayerRun, in_own_time, run_layer
from gradsieve.torch.evidence.kernel_layer import KernelLayer, kernel_serves
from gradsieve.torch.evidence.layer import LinearLayer, PythonLayer
from gradsieve.torch.evidence.local import Local, linearise
from gradsieve.torch.evidence.recursion import Deltas, Scaled, add
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.sequences import TimeFirst
from gradsieve.torch.modules.stack import Place, Stack, StackWeights

Layers = dict[Place, LinearLayer]  # places that a carrier does not reach are absent


Given = tuple[StackWeights, TimeFirst]


class Transport:
    """One call of a recurrent module, gone forward where somebody asks for it."""

    def __init__(
        self,
        stack: Stack,
        weights: StackWeights,
        sequences: TimeFirst,
        memory: Memory | None = None,
    ) -> None:
        self.stack = stack
        self.memory = memory or Memory()
        self._make: Callable[[], Given] = lambda: (weights, sequences)
        self._locals: dict[Place, Local] = {}

    @classmethod
    def later(cls, stack: Stack, make: Callable[[], Given], memory: Memory | None) -> Transport:
        """Of weights and sequences that are made where first asked for."""
        transport = cls.__new__(cls)
        transport.stack, transport.memory = stack, memory or Memory()
        transport._make, transport._locals = make, {}
        return transport

    @cached_property
    def _given(self) -> Given:
        return self._make()

    @property
    def sequences(self) -> TimeFirst:
        return self._given[1]

    @cached_property
    def carriers(self) -> list[Carrier]:
        """Of each direction of time, where a gradient arrives."""
        found = [find_carrier(way, self.sequences) for way in range(self.stack.directions)]
        return [carrier for carrier in found if carrier is not None]

    @cached_property
    def runs(self) -> dict[Place, LayerRun]:
        """Every layer in every direction, gone forward."""
        stack, (weights, given) = self.stack, self._given
        if given.passes is not None:
            only, kept = Place(0, 0), given.passes
            known_by = stack.cell, weights[only], kept.u, given.initial[only], kept.h
            return {only: LayerRun(*known_by, passes=kept)}
        known = given.outputs if stack.layers == stack.directions == 1 else None
        runs: dict[Place, LayerRun] = {}
        u = given.inputs
        for level in range(stack.layers):
            for place in stack.level(level):
                own = self.own_time(u, place.direction)
                runs[place] = run_layer(
                    stack.cell, weights[place], own, given.initial[place], known
                )
            u = self.side_by_side(level, lambda place: runs[place].h)
        return runs

    def layer(self, place: Place) -> LinearLayer:
        """A place, linearised, for one carrier."""
        run = self.runs[place]
        if kernel_serves(run):
            return KernelLayer(run, self.memory)
        if place not in self._locals:
            self._locals[place] = linearise(run)
        return PythonLayer(self._locals[place])

    def own_time(self, values: Tensor, direction: int) -> Tensor:
        return in_own_time(values, direction, self.sequences.lengths)

    def side_by_side(self, level: int, values: Callable[[Place], Tensor]) -> Tensor:
        """Both directions' values at one level, in true time, as the level above reads them."""
        parts = [self.own_time(values(one), one.direction) for one in self.stack.level(level)]
        return self.dropped(level, parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1))

    def dropped(self, level: int, values: Tensor) -> Tensor:
        """A level's outputs, or what is linear in them, as dropout lets them through."""
        masks = self.sequences.masks
        return values * masks[level] if level < len(masks) else values

    @cached_property
    def follows(self) -> bool:
        """Whether it comes to the recorded outputs; with dropout that is not certain."""
        given, top = self.sequences, self.stack.layers - 1
        if not given.masks:
            return True
        if given.outputs is None:
            return given.inputs.device.type == "cpu"
        found = self.side_by_side(top, lambda place: self.runs[place].h)
        return bool(torch.allclose(found, given.outputs, rtol=1e-3, atol=1e-3))


@dataclass(frozen=True)
class Carried:
    """One carrier of one call, and the layers that it reaches on its way back."""

    transport: Transport
    carrier: Carrier
    layers: Layers

    @property
    def own_places(self) -> list[Place]:
        """Those in the carrier's own direction, which it always reaches, from the lowest up."""
        return [place for place in sorted(self.layers) if place.direction == self.carrier.direction]

    @property
    def own(self) -> list[Deltas]:
        """By layer, in the carrier's own direction."""
        return [self.layers[place].deltas for place in self.own_places]

    @property
    def changed(self) -> list[Deltas]:
        """The change of `own`, once it was asked for."""
        return [self.layers[place].changed for place in self.own_places]

    def downwards(
        self,
        visit: Callable[[Place, Scaled | None], bool],
        by_inputs: Callable[[Place], Scaled],
    ) -> None:
        """Visit the places from the top; each is handed the ∂/∂(outputs) of those above it.

        `visit` says whether it has anything to hand down: its ∂/∂(inputs), `by_inputs`.
        """
        from_above: dict[Place, Scaled] = {}
        for level in reversed(range(self.transport.stack.layers)):
            done = [p for p in self.transport.stack.level(level) if visit(p, from_above.get(p))]
            from_above = self._handed_down(level, done, by_inputs) if level and done else {}

    def _handed_down(
        self, level: int, places: list[Place], by_inputs: Callable[[Place], Scaled]
    ) -> dict[Place, Scaled]:
        """∂/∂(outputs of the level below), in their own time."""
        own_time, total = self.transport.own_time, None
        for place in places:
            found, way = by_inputs(place), place.direction
            turned = Scaled((own_time(found.parts[0], way),), own_time(found.exponents, way))
            total = turned if total is None else add(total, turned)
        assert total is not None
        total = Scaled((self.transport.dropped(level - 1, total.parts[0]),), total.exponents)
        handed: dict[Place, Scaled] = {}
        for place in self.transport.stack.level(level - 1):
            width, way = self.transport.runs[place].h.shape[-1], place.direction
            mine = own_time(total.parts[0][..., way * width : (way + 1) * width], way)
            handed[place] = Scaled((mine,), own_time(total.exponents, way))
        return handed

    def upwards(self, visit: Callable[[Place, Callable[[Place], Tensor] | None], Tensor]) -> None:
        """Visit the places from the bottom.

        Each is handed the values that `visit` has returned for those below it, by place.
        """
        values: dict[Place, Tensor] = {}
        for level in range(self.transport.stack.layers):
            for place in self.transport.stack.level(level):
                if place in self.layers:
                    values[place] = visit(place, values.__getitem__ if level else None)


def carry(transport: Transport, carrier: Carrier) -> Carried:
    """Carry γ back through every place that it reaches."""
    layers: Layers = {}
    carried = Carried(transport, carrier, layers)

    def visit(place: Place, above: Scaled | None) -> bool:
        own = place.direction == carrier.direction
        if not own and above is None:
            return False
        layers[place] = transport.layer(place)
        layers[place].reach(carrier, place, above)
        return True

    def by_inputs(place: Place) -> Scaled:
        layer = layers[place]
        return Scaled((layer.by_inputs(),), layer.deltas.exponents)

    carried.downwards(visit, by_inputs)
    return carried
