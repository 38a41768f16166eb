"""How far the gradient of the last step goes back through a stack, and what an update does to it.

Theory and definitions: docs/theory-gated-cells.md. In short, for each direction of time a
*carrier*: the gradient γ that arrived at the last step of each sequence, held as it is. It is
carried back through all layers; δ(n) is the gradient at the recurrent products of that direction,
all layers together, n in that direction's own time.

`full` is the derivative of everything below γ along the weights' change; `frozen` holds every
local Jacobian fixed and moves only the weights that the gradient is multiplied by (Lemma 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradsieve.flow import Estimator
from gradsieve.torch import cells, products, tanh_change
from gradsieve.torch.cells import State
from gradsieve.torch.forward import LayerRun, in_own_time, run_layer
from gradsieve.torch.local import Local, Pulled, linearise
from gradsieve.torch.memory import Memory
from gradsieve.torch.record import Sequences
from gradsieve.torch.recursion import NOTHING, Added, Deltas, Scaled, pull_back, push_forward
from gradsieve.torch.stack import LayerWeights, Stack

StackWeights = list[list[LayerWeights]]


@dataclass(frozen=True)
class Carrier:
    """γ of one direction: where it enters, in that direction's own time."""

    direction: int
    last: Tensor  # (B,) index of the last step that has a gradient; −1 where none has
    gamma: list[State]  # by layer, parts (B,·): γ
    steps: int

    @cached_property
    def injected(self) -> list[State]:
        """By layer, parts (T,B,·): γ at the last step, zero elsewhere."""
        entry = self.last.clamp(min=0)
        everyone = torch.arange(entry.shape[0], device=entry.device)
        return [tuple(self._at(entry, everyone, part) for part in row) for row in self.gamma]

    def _at(self, entry: Tensor, everyone: Tensor, part: Tensor) -> Tensor:
        whole = part.new_zeros((self.steps, *part.shape))
        whole[entry, everyone] = part
        return whole


@dataclass
class Layer:
    """One layer in one direction: its run, its derivatives, and what is known of its changes."""

    local: Local
    dx: Tensor | None = None  # None where da holds both (a joint cell)
    da: Tensor | None = None
    dafter: State | None = None

    @property
    def run(self) -> LayerRun:
        return self.local.run

    def dbefore(self, part: int) -> Tensor:
        """The change of one part of s(0) … s(T−1)."""
        assert self.dafter is not None
        after = self.dafter[part]
        return torch.cat([torch.zeros_like(after[:1]), after[:-1]])


class Transport:
    """One call of a recurrent module, gone forward; asked for deltas and their changes."""

    def __init__(
        self,
        stack: Stack,
        weights: StackWeights,
        sequences: Sequences,
        memory: Memory | None = None,
    ) -> None:
        self.stack = stack
        self.weights = weights
        self.sequences = sequences
        self.memory = memory or Memory()
        self.layers = self._forward()
        self.carriers = [
            carrier
            for direction in range(stack.directions)
            if (carrier := self._carrier(direction)) is not None
        ]

    def _forward(self) -> list[list[Layer]]:
        stack, given = self.stack, self.sequences
        u, layers = given.inputs, []
        known = given.outputs if stack.layers == stack.directions == 1 else None
        for weights, initial in zip(self.weights, given.initial, strict=True):
            row = [
                Layer(linearise(run_layer(stack.cell, w, self._own(u, d), s, known, self.memory)))
                for d, (w, s) in enumerate(zip(weights, initial, strict=True))
            ]
            u = torch.cat([self._own(layer.run.after[0], d) for d, layer in enumerate(row)], dim=-1)
            layers.append(row)
        return layers

    @property
    def one_tanh_layer(self) -> bool:
        """Whether the kernel's routines for a single tanh layer can be used."""
        alone = self.stack.layers == self.stack.directions == 1
        return alone and tanh_change.usable(self.layers[0][0].local)

    def _own(self, values: Tensor, direction: int) -> Tensor:
        return in_own_time(values, direction, self.sequences.lengths)

    def _carrier(self, direction: int) -> Carrier | None:
        """The gradient that arrived at each sequence's last step (its last one that has any)."""
        stack, given = self.stack, self.sequences
        top = self.layers[-1][direction].run.after
        steps, batch = top[0].shape[:2]
        device = top[0].device
        end = torch.full((batch,), steps, device=device) if given.lengths is None else given.lengths
        gamma = [
            [torch.zeros_like(part[0]) for part in row[direction].run.after] for row in self.layers
        ]
        everyone = torch.arange(batch, device=device)
        last = torch.full((batch,), -1, device=device)
        if given.by_output is not None:
            width = top[0].shape[-1]
            mine = given.by_output[..., direction * width : (direction + 1) * width]
            mine = self._own(mine, direction)
            last = _last_arrival(mine)
        for part in given.by_last:
            if part is not None:
                rows = part[direction :: stack.directions]
                last = torch.where((rows != 0).any(-1).any(0), end - 1, last)
        entry = last.clamp(min=0)
        if given.by_output is not None:
            gamma[-1][0] = mine[entry, everyone]
        for index, part in enumerate(given.by_last):
            if part is not None:
                rows = part[direction :: stack.directions]
                for layer, row in enumerate(rows):
                    gamma[layer][index] = gamma[layer][index] + row
        if bool((last < 0).all()):
            return None
        return Carrier(direction, last, [tuple(row) for row in gamma], steps)

    def deltas(self, carrier: Carrier) -> list[list[Deltas | None]]:
        """By layer and direction. Directions that the carrier does not reach are None."""
        if self.one_tanh_layer:
            return [[tanh_change.deltas(self.layers[0][0].run, carrier.gamma[0][0], carrier.last)]]
        result: list[list[Deltas | None]] = []
        from_above: list[Scaled | None] = [None] * self.stack.directions
        for index in reversed(range(self.stack.layers)):
            row: list[Deltas | None] = []
            for direction, layer in enumerate(self.layers[index]):
                entering = self._entering(carrier, index, direction, from_above[direction])
                if entering is None:
                    row.append(None)
                    continue
                row.append(pull_back(layer.local, layer.run.weights["weight_hh"], entering))
            result.insert(0, row)
            if index:
                from_above = self._handed_down(index, row, None)
        return result

    def _entering(
        self, carrier: Carrier, index: int, direction: int, from_above: Scaled | None
    ) -> Scaled | None:
        """What is injected at this layer: γ, what the layer above hands down, or both."""
        own = None
        if direction == carrier.direction:
            parts = carrier.injected[index]
            # With a layer above, most lower layers have no γ of their own.
            if from_above is None or any(bool((part != 0).any()) for part in parts):
                own = Scaled(parts, torch.zeros_like(parts[0][..., 0], dtype=torch.int32))
        if own is None:
            return from_above
        return own if from_above is None else _sum(own, from_above)

    def _handed_down(
        self, index: int, row: list[Deltas | None], changes: list[Deltas | None] | None
    ) -> list[Scaled | None]:
        """∂/∂(outputs of the layer below), by its direction, in its own time; or its change."""
        below = self.layers[index - 1]
        total: Scaled | None = None
        for direction, (layer, deltas) in enumerate(zip(self.layers[index], row, strict=True)):
            if deltas is None:
                continue
            weight = layer.run.weights["weight_ih"]
            if changes is None:
                # A joint cell reads x as it reads a: ∂/∂x is δ.
                by_x = deltas.delta if layer.run.cell.joint else layer.local.pull(deltas.g).x
                by_u = by_x.flatten(-2) @ weight
            else:
                change = changes[direction]
                assert change is not None
                by_u = self._changed_hand_down(index, direction, layer, deltas, change)
            turned = Scaled((self._own(by_u, direction),), self._own(deltas.exponents, direction))
            total = turned if total is None else _sum(total, turned)
        if total is None:
            return [None] * len(below)
        values, width = total.parts[0], below[0].run.after[0].shape[-1]
        handed: list[Scaled | None] = []
        for direction, layer in enumerate(below):
            mine = self._own(values[..., direction * width : (direction + 1) * width], direction)
            rest = tuple(torch.zeros_like(part) for part in layer.run.after[1:])
            handed.append(Scaled((mine, *rest), self._own(total.exponents, direction)))
        return handed

    def changes(
        self,
        carrier: Carrier,
        deltas: list[list[Deltas | None]],
        update: StackWeights,
        estimator: Estimator,
    ) -> list[Deltas]:
        """The change of each layer's deltas in the carrier's direction, in the deltas' units."""
        self._update, self._estimator = update, estimator
        only = deltas[0][0]
        if self.one_tanh_layer and estimator == "full" and only is not None:
            return [tanh_change.full_change(self.layers[0][0].run, only, update[0][0])]
        if estimator == "full" and self.layers[0][0].dafter is None:
            self._push(update)
        rows: list[list[Deltas | None]] = []
        from_above: list[Scaled | None] = [None] * self.stack.directions
        for index in reversed(range(self.stack.layers)):
            row: list[Deltas | None] = []
            for direction, layer in enumerate(self.layers[index]):
                known = deltas[index][direction]
                if known is None:
                    row.append(None)
                    continue
                change = update[index][direction]
                row.append(
                    pull_back(
                        layer.local,
                        layer.run.weights["weight_hh"],
                        from_above[direction],
                        self._added(layer, known, change),
                        known.exponents,
                        keep_g=not layer.run.cell.joint,  # read where it is handed down
                    )
                )
            rows.insert(0, row)
            if index:
                from_above = self._handed_down(index, deltas[index], row)
        return own_direction(carrier, rows)

    def _added(self, layer: Layer, known: Deltas, change: LayerWeights) -> Added:
        after = layer.run.after
        through = self.memory.empty(after[0].shape, after[0])
        rows = known.delta.flatten(-2).flatten(0, 1)
        products.multiply(through.flatten(0, 1), rows, change["weight_hh"])
        states: list[Tensor | None] = [through] + [None] * (len(after) - 1)
        if self._estimator == "frozen":
            return Added(None, states)
        bent = self._bent(layer, known, change)
        states = [
            more if old is None else old if more is None else old + more
            for old, more in zip(states, bent.state, strict=True)
        ]
        return Added(bent.a, states)

    def _bent(self, layer: Layer, known: Deltas, change: LayerWeights) -> Pulled:
        assert layer.da is not None
        extra = cells.beyond_linear(change)
        return layer.local.bend(known.g, layer.dx, layer.da, layer.dbefore, extra)

    def _changed_hand_down(
        self, index: int, direction: int, layer: Layer, known: Deltas, change: Deltas
    ) -> Tensor:
        update = self._update[index][direction]
        if layer.run.cell.joint:
            by_x, dby_x = known.delta, change.delta
        else:
            by_x, dby_x = layer.local.pull(known.g).x, layer.local.pull(change.g).x
            if self._estimator == "full":
                dby_x = dby_x + self._bent(layer, known, update).x
        return (
            dby_x.flatten(-2) @ layer.run.weights["weight_ih"]
            + by_x.flatten(-2) @ update["weight_ih"]
        )

    def _push(self, update: StackWeights) -> None:
        """The change of every state along the update, layer by layer; the inputs are held."""
        gates = len(self.stack.cell.gates)
        du: Tensor | None = None
        for row, changes in zip(self.layers, update, strict=True):
            for direction, (layer, change) in enumerate(zip(row, changes, strict=True)):
                run = layer.run
                extra = cells.beyond_linear(change)
                through = None
                if du is not None:
                    own = self._own(du, direction)
                    through = cells.in_blocks(own @ run.weights["weight_ih"].T, gates)
                R = None
                if run.cell.joint and not extra:
                    explicit = cells.sum_of_products(
                        run.u, run.before[0], change, gates, self.memory
                    )
                    explicit = explicit if through is None else explicit.add_(through)
                else:
                    explicit = cells.recur(run.before[0], change, gates)
                    dx = cells.drive(run.u, change, gates)
                    layer.dx = dx if through is None else dx + through
                    R = layer.local.push(layer.dx, extra)
                layer.da, layer.dafter = push_forward(
                    layer.local, run.weights["weight_hh"], explicit, R
                )
            du = torch.cat(
                [self._own(layer.dafter[0], d) for d, layer in enumerate(row)],  # type: ignore[index]
                dim=-1,
            )


def own_direction(carrier: Carrier, rows: list[list[Deltas | None]]) -> list[Deltas]:
    """By layer, those in the carrier's own direction, which it always reaches."""
    return [found for row in rows if (found := row[carrier.direction]) is not None]


def _last_arrival(gradient: Tensor) -> Tensor:
    """(B,): the index of each example's last step whose gradient is not zero; −1 for none."""
    steps = gradient.shape[0]
    if bool((gradient[-1] != 0).any(-1).all()):  # the rule; saves looking at all the others
        return torch.full(gradient.shape[1:2], steps - 1, device=gradient.device)
    step = torch.arange(1, steps + 1, device=gradient.device).unsqueeze(1)
    return ((gradient != 0).any(-1) * step).amax(0) - 1


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
