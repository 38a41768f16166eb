"""How far the gradient of a recurrent module agrees with that of the step before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from gradsieve.errors import InvalidArgument
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.measures import products
from gradsieve.torch.modules.stack import Stack


@dataclass
class _Before:
    """A gradient as one vector, kept in the same memory from step to step."""

    values: Tensor
    square: float


class Successive:
    """Compares each step's gradient of a module with that of the step before."""

    def __init__(self) -> None:
        self._before: dict[str, _Before] = {}  # by the module's name

    @torch.no_grad()
    def cosine(self, stack: Stack) -> float:
        """The cosine of the module's gradient with that of the last call; NaN where one is none."""
        parts = [_wide(one.grad) for one in stack.parameters() if one.grad is not None]
        before = self._before.get(stack.name)
        if before is None or before.values.numel() != sum(part.numel() for part in parts):
            self._before.pop(stack.name, None)
            if parts:
                values = torch.cat(parts)
                self._before[stack.name] = _Before(values, products(values, values)[1])
            return math.nan
        before.values = before.values.to(parts[0])  # the module may have moved, or changed its type
        inner = square = 0.0
        earlier = torch.split(before.values, [part.numel() for part in parts])
        for part, its_earlier in zip(parts, earlier, strict=True):
            both, own = products(part, its_earlier)
            inner, square = inner + both, square + own
            its_earlier.copy_(part)
        square_before, before.square = before.square, square
        if not (0 < square < math.inf and 0 < square_before < math.inf):
            return math.nan
        return inner / (math.sqrt(square) * math.sqrt(square_before))

    def saved(self) -> dict[str, Tensor]:
        """The last gradients, so that a training goes on with the cosine it would have had."""
        return {name: before.values.clone() for name, before in self._before.items()}

    @classmethod
    def loaded(cls, saved: Any) -> Successive:
        """From `saved()`; anything else is refused."""
        found = cls()
        if not isinstance(saved, dict) or not all(map(_is_gradient, saved.values())):
            raise InvalidArgument(
                "state_dict's 'gradsieve' is no state of gst.Sieve: gradients must be a dict of "
                "finite vectors"
            )
        for name, values in saved.items():
            found._before[str(name)] = _Before(values.clone(), products(values, values)[1])
        return found


def mean_over_processes(agreement: float) -> float:
    """The same bits in each process, so that they come to one decision."""
    total = over_processes(torch.tensor(agreement, dtype=torch.float64))
    return float(total) / torch.distributed.get_world_size()


def _wide(gradient: Tensor) -> Tensor:
    """As a vector, in float32 or wider: less would say less of the cosine than the noise does."""
    dense = gradient if gradient.layout is torch.strided else gradient.to_dense()
    return dense.flatten().to(torch.promote_types(dense.dtype, torch.float32))


def _is_gradient(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dim() == 1
        and value.is_floating_point()
        and bool(torch.isfinite(value).all())
    )
