"""How far the gradient of a recurrent module agrees with that of the step before."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsieve.torch.measures import products
from gradsieve.torch.modules.stack import Stack


@dataclass
class _Before:
    """A gradient, kept in the same memory from step to step."""

    parts: list[Tensor]
    square: float


class Successive:
    """Compares each step's gradient of a module with that of the step before."""

    def __init__(self) -> None:
        self._before: dict[str, _Before] = {}  # by the module's name

    @torch.no_grad()
    def cosine(self, stack: Stack) -> float:
        """The cosine of the module's gradient with that of the last call; NaN where one is none."""
        parts = [one.grad for one in stack.parameters() if one.grad is not None]
        before = self._before.get(stack.name)
        if before is None or not _alike(before.parts, parts):
            self._before[stack.name] = _Before(
                [_wide(one).clone() for one in parts], _square(parts)
            )
            return math.nan
        inner = square = 0.0
        for part, earlier in zip(parts, before.parts, strict=True):
            both, own = products(_wide(part), earlier)
            inner, square = inner + both, square + own
            earlier.copy_(part)
        square_before, before.square = before.square, square
        if not (0 < square < math.inf and 0 < square_before < math.inf):
            return math.nan
        return inner / (math.sqrt(square) * math.sqrt(square_before))


def _wide(gradient: Tensor) -> Tensor:
    """In float32 or wider; a lower precision would say less of the cosine than the noise does."""
    return gradient.to(torch.promote_types(gradient.dtype, torch.float32))


def _square(parts: list[Tensor]) -> float:
    return sum(products(one, one)[1] for one in map(_wide, parts))


def _alike(before: list[Tensor], parts: list[Tensor]) -> bool:
    return len(before) == len(parts) and all(
        one.shape == part.shape and one.device == part.device
        for one, part in zip(before, parts, strict=True)
    )
