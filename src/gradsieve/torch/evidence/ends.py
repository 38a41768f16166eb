"""From deltas to the sums that `gradsieve.change.summarise` turns into S, dS, Q and dQ.

Examples are counted once for each direction of time. An example counts when it is long enough for
the horizon: h steps, or, where no horizon is set, from its last step to its very first. Over
several processes the sums are added up, so that all of them come to the same verdict.

These are few and small numbers, so they are NumPy's: its calls cost a fraction of PyTorch's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed
from torch import Tensor

from gradsieve.flow import Norms
from gradsieve.network import Array
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.evidence.recursion import Deltas


@dataclass(frozen=True)
class Ends:
    """δ at the near and the far end of N examples; values (layers,N), exponents whole numbers.

    A norm's square is `square · 4**exponent`, a product ⟨δ,dδ⟩ likewise.
    """

    near_square: Array
    near_product: Array
    far_square: Array
    far_product: Array
    near_exponent: Array
    far_exponent: Array

    @property
    def count(self) -> int:
        return int(self.near_square.shape[-1])


def ends(
    carrier: Carrier,
    deltas: list[Deltas],
    changes: list[Deltas] | None,
    horizon: int | None,
) -> Ends:
    """The two ends of every example that is long enough, by layer."""
    far, usable = (values.cpu().numpy() for values in carrier.far_steps(horizon))
    examples = np.flatnonzero(usable)
    # Both ends at once: the near ones, then the far ones.
    step = np.concatenate([carrier.last.cpu().numpy()[examples], far[examples]])
    both = np.concatenate([examples, examples])
    squares, products, exponents = [], [], []
    for index, layer in enumerate(deltas):
        delta, units = at_steps(layer, step, both)
        squares.append((delta * delta).sum(1))
        exponents.append(units)
        if changes is None:
            products.append(np.zeros(len(both)))
        else:
            products.append((delta * _at(changes[index].delta, step, both)).sum(1))
    count = len(examples)
    square, product, exponent = np.array(squares), np.array(products), np.array(exponents, int)
    return Ends(
        square[:, :count],
        product[:, :count],
        square[:, count:],
        product[:, count:],
        exponent[:, :count],
        exponent[:, count:],
    )


def at_steps(deltas: Deltas, step: Array, example: Array) -> tuple[Array, Array]:
    """δ (N,·) at one step of each example, and its exponents."""
    units = _at(deltas.exponents, step, example)[:, 0].astype(np.int64)
    return _at(deltas.delta, step, example), units


def _at(values: Tensor, step: Array, example: Array) -> Array:
    """(N,·) in double precision: the values at one step of each example."""
    if values.device.type == "cpu":
        found = values.numpy()[step, example]
    else:
        found = values[torch.from_numpy(step), torch.from_numpy(example)].cpu().numpy()
    return found.reshape(len(example), math.prod(values.shape[2:])).astype(np.float64)


def no_ends(layers: int) -> Ends:
    """Of no example."""
    none, whole = np.zeros((layers, 0)), np.zeros((layers, 0), int)
    return Ends(none, none, none, none, whole, whole)


def joined(parts: list[Ends]) -> Ends:
    """The same for all examples of all calls."""
    return Ends(
        *(
            np.concatenate([getattr(part, name) for part in parts], axis=1)
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


def _side(square: Array, product: Array, exponent: Array, together: bool) -> _Side:
    """All layers of an example are one long δ: its squares and products add up."""
    lowest = -(2**40)
    used = exponent[square > 0]
    common = int(used.max()) if used.size else lowest
    if together:
        common = int(over_processes(torch.tensor(common), torch.distributed.ReduceOp.MAX))
    if common == lowest:
        common = 0
    shift = 2 * np.maximum(exponent - common, -2000)
    squares = np.ldexp(square, shift).sum(0)
    products = np.ldexp(product, shift).sum(0)
    lengths = np.sqrt(squares)
    slopes = np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    total = [float(one.sum()) for one in (lengths, slopes, squares, products)]
    if together:
        wide = torch.tensor(total, dtype=torch.float64)
        total = over_processes(wide).tolist()
    norm, slope, sum_square, sum_product = total
    return _Side(norm, slope, sum_square, sum_product, common)
