"""What an update of the weights does to the deltas, to first order.

`full` is the derivative of everything below γ along the weights' change; `frozen` holds every
local Jacobian fixed and moves only the weights that the gradient is multiplied by (Lemma 1).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from gradsieve.torch.evidence.recursion import Scaled
from gradsieve.torch.evidence.transport import Carried
from gradsieve.torch.modules.stack import Place, StackWeights


def change_deltas(carried: Carried, update: StackWeights, frozen: bool) -> None:
    """Fill `carried.changed`; γ and the inputs of the lowest layer are held."""
    layers, transport = carried.layers, carried.transport

    def push(place: Place, after: Callable[[Place], Tensor] | None) -> Tensor:
        below = None
        if after is not None:
            du = transport.side_by_side(place.layer - 1, after)
            below = transport.own_time(du, place.direction)
        return layers[place].push(update[place], below)

    def visit(place: Place, above: Scaled | None) -> bool:
        if place in layers:
            layers[place].change(update[place], above)
        return place in layers

    def by_inputs(place: Place) -> Scaled:
        layer = layers[place]
        return Scaled((layer.change_by_inputs(update[place]),), layer.deltas.exponents)

    if not frozen:
        carried.upwards(push)
    carried.downwards(visit, by_inputs)
