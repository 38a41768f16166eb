"""From deltas to the sums that `gradsieve.change.summarise` turns into S, dS, Q and dQ.

Examples are counted once for each direction of time. An example counts when it is long enough for
the horizon: h steps, or, where no horizon is set, from its last step to its very first. Over
several processes the sums are added up, so that all of them come to the same verdict.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed
from torch import Tensor

from gradsieve.flow import Norms
from gradsieve.torch.recursion import Deltas
from gradsieve.torch.transport import Carrier


@dataclass(frozen=True)
class Ends:
    """δ at the near and the far end of N examples; values (layers,N) float64 on the CPU.

    A norm's square is `square · 4**exponent`, a product ⟨δ,dδ⟩ likewise.
    """

    near_square: Tensor
    near_product: Tensor
    far_square: Tensor
    far_product: Tensor
    near_exponent: Tensor
    far_exponent: Tensor

    @property
    def count(self) -> int:
        return int(self.near_square.shape[-1])


def far_steps(carrier: Carrier, horizon: int | None) -> tuple[Tensor, Tensor]:
    """The index of each example's far step, and which examples are long enough to have one."""
    if horizon is None:
        return torch.zeros_like(carrier.last), carrier.last >= 1
    far = carrier.last - horizon
    return far.clamp(min=0), far >= 0


def ends(
    carrier: Carrier,
    deltas: list[Deltas],
    changes: list[Deltas] | None,
    horizon: int | None,
) -> Ends:
    """The two ends of every example that is long enough, by layer."""
    far, usable = far_steps(carrier, horizon)
    examples = torch.arange(far.shape[0], device=far.device)[usable]
    far, near = far[usable], carrier.last[usable]
    rows = []
    for index, layer in enumerate(deltas):
        row = []
        for step in (near, far):
            delta = layer.delta[step, examples].flatten(1).double()
            product = torch.zeros_like(delta[:, 0])
            if changes is not None:
                product = (delta * changes[index].delta[step, examples].flatten(1)).sum(1)
            row += [(delta * delta).sum(1), product, layer.exponents[step, examples].double()]
        rows.append(torch.stack(row))
    values = torch.stack(rows, dim=1).cpu()
    near_square, near_product, near_exponent, far_square, far_product, far_exponent = values
    return Ends(
        near_square,
        near_product,
        far_square,
        far_product,
        near_exponent.long(),
        far_exponent.long(),
    )


def no_ends(layers: int) -> Ends:
    """Of no example."""
    none, whole = torch.zeros((layers, 0), dtype=torch.float64), torch.zeros((layers, 0)).long()
    return Ends(none, none, none, none, whole, whole)


def joined(parts: list[Ends]) -> Ends:
    """The same for all examples of all calls."""
    return Ends(
        *(
            torch.cat([getattr(part, name) for part in parts], dim=1)
            for name in Ends.__dataclass_fields__
        )
    )


def norms(found: Ends, together: bool) -> Norms:
    """Sums over the examples, and over all processes where they judge `together`."""
    near = _side(found.near_square, found.near_product, found.near_exponent, together)
    far = _side(found.far_square, found.far_product, found.far_exponent, together)
    return Norms(
        near_norm=near.norm,
        near_slope=near.slope,
        far_norm=far.norm,
        far_slope=far.slope,
        far_square=far.square,
        far_product=far.product,
        near_exponent=near.exponent,
        far_exponent=far.exponent,
    )


@dataclass(frozen=True)
class _Side:
    norm: float
    slope: float
    square: float
    product: float
    exponent: int


def _side(square: Tensor, product: Tensor, exponent: Tensor, together: bool) -> _Side:
    """All layers of an example are one long δ: its squares and products add up."""
    lowest = -(2**40)
    used = torch.where(square > 0, exponent, lowest)
    common = used.max() if used.numel() else torch.tensor(lowest)
    if together:
        torch.distributed.all_reduce(common, torch.distributed.ReduceOp.MAX)
    if int(common) == lowest:
        common = torch.zeros_like(common)
    shift = 2 * (exponent - common).clamp(min=-2000)
    squares = torch.ldexp(square, shift).sum(0)
    products = torch.ldexp(product, shift).sum(0)
    lengths = squares.sqrt()
    slopes = torch.where(lengths > 0, products / lengths, torch.zeros_like(lengths))
    total = torch.stack([lengths.sum(), slopes.sum(), squares.sum(), products.sum()])
    if together:
        torch.distributed.all_reduce(total)
    norm, slope, sum_square, sum_product = total.tolist()
    return _Side(norm, slope, sum_square, sum_product, int(common))
