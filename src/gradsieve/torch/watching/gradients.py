"""The length of the gradient from step to step: whether it is finite, and how clipping bites."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from gradsieve.torch.applying.clipping import total_norm

MANY = 1000  # norms that wait on their device before they are read


class GradientNorms:
    """Norms since the last reading, as they were before clipping at `clip`.

    They are kept as tensors, so that a device need not be waited for at every step.
    """

    def __init__(self, clip: float | None, computed: bool = True) -> None:
        self.clip = clip
        self.computed = computed  # at looks, where no norm was given
        self.not_finite = 0  # steps since the beginning
        self._waiting: list[Tensor] = []
        self._norms: list[float] = []

    def compute(self, parameters: Iterable[Tensor]) -> None:
        """Note the norm of these parameters' gradients, if none was given since the last time."""
        if self.computed and not (self._waiting or self._norms):
            norm = total_norm(parameters)
            if norm is not None:
                self.note(norm)

    def note(self, norm: float | Tensor) -> None:
        """Keep the norm of one step."""
        self._waiting.append(torch.as_tensor(norm).detach())
        if len(self._waiting) >= MANY:
            self._collect()

    def values(self) -> dict[str, float]:
        """The numbers since the last call, by name."""
        self._collect()
        norms, self._norms = self._norms, []
        if not norms:
            return {}
        finite = [norm for norm in norms if math.isfinite(norm)]
        found = {"gradient_norm": norms[-1], "not_finite": float(self.not_finite)}
        if len(norms) > 1 and finite:
            found["gradient_norm/highest"] = max(finite)
        if self.clip is not None and math.isfinite(self.clip) and finite:
            factors = [self.clip / norm for norm in finite if norm > self.clip]
            found["clip/threshold"] = self.clip
            found["clip/share"] = len(factors) / len(finite)
            if factors:
                found["clip/factor"] = math.exp(sum(map(math.log, factors)) / len(factors))
        return found

    def _collect(self) -> None:
        norms = [float(norm) for norm in self._waiting]
        self._waiting.clear()
        self.not_finite += sum(not math.isfinite(norm) for norm in norms)
        self._norms += norms
