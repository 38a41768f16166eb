"""How far the gradient of the last step goes back through a stack of layers.

Theory and definitions: docs/theory-gated-cells.md. A carrier's γ, held as it is, is carried back
through all layers; δ(n) is the gradient at the recurrent products of its direction, all layers
together, n in that direction's own time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import torch
from torch import Tensor

from gradsieve.torch import kernel_bridge
from gradsieve.torch.evidence.carrier import Carrier, find_carrier
from gradsieve.torch.evidence.forward import in_own_time, run_layer
from gradsieve.torch.evidence.local import Local, TanhLocal, linearise
from gradsieve.torch.evidence.recursion import NOTHING, Deltas, Scaled, pull_back
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.sequences import TimeFirst
from gradsieve.torch.modules.stack import Place, Stack, StackWeights

Reached = dict[Place, Deltas]  # places that a carrier does not reach are absent


class Transport:
    """One call of a recurrent module, gone forward; asked for deltas."""

    def __init__(
        self,
        stack: Stack,
        weights: StackWeights,
        sequences: TimeFirst,
        memory: Memory | None = None,
    ) -> None:
        self.stack = stack
        self.weights = weights
        self.sequences = sequences
        self.memory = memory or Memory()
        self.layers = self._forward()
        found = [self._carrier(direction) for direction in range(stack.directions)]
        self.carriers = [carrier for carrier in found if carrier is not None]

    def _forward(self) -> dict[Place, Local]:
        stack, given = self.stack, self.sequences
        known = given.outputs if stack.layers == stack.directions == 1 else None
        layers: dict[Place, Local] = {}
        u = given.inputs
        for level in range(stack.layers):
            for place in stack.level(level):
                own = self.own_time(u, place.direction)
                initial = given.initial[place]
                run = run_layer(stack.cell, self.weights[place], own, initial, known, self.memory)
                layers[place] = linearise(run)
            u = self.side_by_side(lambda place: layers[place].run.after[0], level)
        return layers

    def _carrier(self, direction: int) -> Carrier | None:
        states = [self.layers[Place(n, direction)].run.after for n in range(self.stack.layers)]
        return find_carrier(direction, self.sequences, states)

    def own_time(self, values: Tensor, direction: int) -> Tensor:
        return in_own_time(values, direction, self.sequences.lengths)

    def side_by_side(self, values: Callable[[Place], Tensor], level: int) -> Tensor:
        """Both directions' values at one level, in true time, as the level above reads them."""
        places = self.stack.level(level)
        joined = torch.cat([self.own_time(values(one), one.direction) for one in places], dim=-1)
        mask = self._mask(level)
        return joined if mask is None else joined * mask

    def _mask(self, level: int) -> Tensor | None:
        """What dropout multiplied the outputs of a level by."""
        masks = self.sequences.masks
        return masks[level] if level < len(masks) else None

    @cached_property
    def follows(self) -> bool:
        """Whether it comes to the recorded outputs; with dropout that is not certain."""
        given, top = self.sequences, self.stack.layers - 1
        if not given.masks:
            return True
        if given.outputs is None:
            return given.inputs.device.type == "cpu"
        found = self.side_by_side(lambda place: self.layers[place].run.after[0], top)
        return bool(torch.allclose(found, given.outputs, rtol=1e-3, atol=1e-3))

    @property
    def one_tanh_layer(self) -> TanhLocal | None:
        """The layer, where the kernel's routines for a single tanh layer can be used."""
        only = self.layers[Place(0, 0)]
        alone = len(self.layers) == 1 and isinstance(only, TanhLocal)
        return only if alone and kernel_bridge.serves(only.run.after[0]) else None  # type: ignore[return-value]

    def deltas(self, carrier: Carrier) -> Reached:
        """δ at every place that the carrier reaches."""
        only = self.one_tanh_layer
        if only is not None:
            run = only.run
            delta, exponents = kernel_bridge.tanh_deltas(
                run.after[0],
                run.weights["weight_hh"],
                carrier.gamma[0][0],
                carrier.last,
                run.memory,
            )
            return {Place(0, 0): Deltas(delta.unsqueeze(-2), (), exponents)}
        reached: Reached = {}
        from_above: dict[Place, Scaled] = {}
        for level in reversed(range(self.stack.layers)):
            for place in self.stack.level(level):
                entering = _entering(carrier, place, from_above.get(place))
                if entering is not None:
                    local = self.layers[place]
                    reached[place] = pull_back(local, local.run.weights["weight_hh"], entering)
            if level:
                from_above = self.handed_down(level, reached, self._by_inputs)
        return reached

    def _by_inputs(self, place: Place, deltas: Deltas) -> Tensor:
        """∂/∂(inputs) of a layer. A joint cell reads x as it reads a: ∂/∂x is δ."""
        local = self.layers[place]
        by_x = deltas.delta if local.run.cell.joint else local.pull(deltas.g).x
        return by_x.flatten(-2) @ local.run.weights["weight_ih"]

    def handed_down(
        self, level: int, deltas: Reached, by_inputs: Callable[[Place, Deltas], Tensor]
    ) -> dict[Place, Scaled]:
        """∂/∂(outputs of the level below), in their own time; or, by other inputs, its change."""
        total: Scaled | None = None
        for place in self.stack.level(level):
            if place in deltas:
                by_u = self.own_time(by_inputs(place, deltas[place]), place.direction)
                units = self.own_time(deltas[place].exponents, place.direction)
                turned = Scaled((by_u,), units)
                total = turned if total is None else _sum(total, turned)
        if total is None:
            return {}
        mask = self._mask(level - 1)
        if mask is not None:
            total = Scaled(tuple(part * mask for part in total.parts), total.exponents)
        handed: dict[Place, Scaled] = {}
        for place in self.stack.level(level - 1):
            after = self.layers[place].run.after
            width, way = after[0].shape[-1], place.direction
            mine = self.own_time(total.parts[0][..., way * width : (way + 1) * width], way)
            rest = tuple(torch.zeros_like(part) for part in after[1:])
            handed[place] = Scaled((mine, *rest), self.own_time(total.exponents, way))
        return handed


def own_direction(carrier: Carrier, reached: Reached) -> list[Deltas]:
    """By layer, those in the carrier's own direction, which it always reaches."""
    return [reached[place] for place in sorted(reached) if place.direction == carrier.direction]


def _entering(carrier: Carrier, place: Place, from_above: Scaled | None) -> Scaled | None:
    """What is injected at a layer: γ, what the layer above hands down, or both."""
    own = None
    if place.direction == carrier.direction:
        parts = carrier.injected[place.layer]
        # With a layer above, most lower layers have no γ of their own.
        if from_above is None or any(bool((part != 0).any()) for part in parts):
            own = Scaled(parts, torch.zeros_like(parts[0][..., 0], dtype=torch.int32))
    if own is None:
        return from_above
    return own if from_above is None else _sum(own, from_above)


def _sum(one: Scaled, other: Scaled) -> Scaled:
    """Their sum, in units that suit the larger of the two at each step of each example."""
    exponents = torch.maximum(_units(one), _units(other))
    exponents = torch.where(exponents == NOTHING, 0, exponents)
    parts = tuple(
        torch.ldexp(left, (one.exponents - exponents).unsqueeze(-1))
        + torch.ldexp(right, (other.exponents - exponents).unsqueeze(-1))
        for left, right in zip(one.parts, other.parts, strict=True)
    )
    return Scaled(parts, exponents)


def _units(scaled: Scaled) -> Tensor:
    some = torch.stack([(part != 0).any(-1) for part in scaled.parts]).any(0)
    return torch.where(some, scaled.exponents, NOTHING)
