"""How far the gradient of a recurrent module agrees with that of the step before."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradsieve.torch.modules.stack import Stack


class Successive:
    """Compares each step's gradient of a module with that of the step before."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[Tensor, float]] = {}  # and its length, by the module's name

    @torch.no_grad()
    def cosine(self, stack: Stack) -> float:
        """The cosine of the module's gradient with that of the last call; NaN where one is none."""
        parts = [one.grad.flatten() for one in stack.parameters() if one.grad is not None]
        before, length_before = self._before.pop(stack.name, (None, 0.0))
        if not parts:
            return math.nan
        gradient = torch.cat(parts)
        gradient = gradient.to(torch.promote_types(gradient.dtype, torch.float32))
        length = float(torch.linalg.vector_norm(gradient))
        self._before[stack.name] = gradient, length
        if before is None or before.shape != gradient.shape:
            return math.nan
        if not (0 < length < math.inf and 0 < length_before < math.inf):
            return math.nan
        return float(torch.dot(gradient / length, before / length_before))
