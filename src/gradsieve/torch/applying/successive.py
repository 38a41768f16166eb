"""How far the gradient of a recurrent module agrees with that of the step before."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from gradsieve.errors import InvalidArgument
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.modules.stack import Stack


class Successive:
    """Compares each step's gradient of a module with that of the step before."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[Tensor, float]] = {}  # and its length, by the module's name

    @torch.no_grad()
    def cosine(self, stack: Stack) -> float:
        """The cosine of the module's gradient with that of the last call; NaN where one is none."""
        parts = [_dense(one.grad).flatten() for one in stack.parameters() if one.grad is not None]
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
        before = before.to(gradient)  # the module may have moved, or changed its type
        return float(torch.dot(gradient / length, before / length_before))

    def saved(self) -> dict[str, Tensor]:
        """The last gradients, so that a training goes on with the cosine it would have had."""
        return {name: gradient for name, (gradient, _) in self._before.items()}

    @classmethod
    def loaded(cls, saved: Any) -> Successive:
        """From `saved()`; anything else is refused."""
        found = cls()
        if not isinstance(saved, dict) or not all(map(_is_gradient, saved.values())):
            raise InvalidArgument(
                "state_dict's 'gradsieve' is no state of gst.Sieve: gradients must be a dict of "
                "finite vectors"
            )
        for name, gradient in saved.items():
            length = float(torch.linalg.vector_norm(gradient))
            found._before[str(name)] = gradient.clone(), length
        return found


def mean_over_processes(agreement: float) -> float:
    """The same bits in each process, so that they come to one decision."""
    total = over_processes(torch.tensor(agreement, dtype=torch.float64))
    return float(total) / torch.distributed.get_world_size()


def _dense(gradient: Tensor) -> Tensor:
    return gradient if gradient.layout is torch.strided else gradient.to_dense()


def _is_gradient(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.dim() == 1
        and value.is_floating_point()
        and bool(torch.isfinite(value).all())
    )
