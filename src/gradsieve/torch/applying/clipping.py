"""Clipping the norm of all gradients together, at a given threshold or at AutoClip's."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor

from gradsieve.errors import InvalidArgument
from gradsieve.recipe.optimiser import AUTO
from gradsieve.training.auto_clip import QUANTILE, AutoClip

Threshold = float | Literal["auto"]


def total_norm(parameters: Iterable[Tensor]) -> Tensor | None:
    """The norm of all gradients together, or None where there are none."""
    gradients = [values_of(one.grad.detach()) for one in parameters if one.grad is not None]
    if not gradients:
        return None
    device = gradients[0].device
    wide = [
        torch.linalg.vector_norm(one, dtype=torch.promote_types(one.dtype, torch.float32)).to(
            device
        )
        for one in gradients
    ]
    norm: Tensor = torch.linalg.vector_norm(torch.stack(wide))
    return norm


def values_of(gradient: Tensor) -> Tensor:
    """The values of a gradient that are not zero for certain: of a sparse one those it has."""
    return gradient.coalesce().values() if gradient.is_sparse else gradient


class Clip:
    """Scales gradients whose norm is above a threshold down to it.

    >>> model = torch.nn.Linear(2, 1)
    >>> clip = Clip("auto")  # AutoClip: the threshold is a quantile of all norms so far
    >>> model(torch.ones(4, 2)).sum().backward()
    >>> norm = clip(model.parameters())
    >>> clip.steps, clip.bites, norm <= clip.threshold
    (1, 0, True)

    Args:
        threshold: a number, or "auto".
        quantile: with "auto", the share of norms that the threshold lies above.

    Attributes:
        steps: how often it was called with finite gradients.
        bites: how often the norm was above the threshold.
    """

    def __init__(self, threshold: Threshold = AUTO, quantile: float = QUANTILE) -> None:
        if threshold != AUTO and not (isinstance(threshold, int | float) and threshold > 0):
            raise InvalidArgument(f"clip is {threshold!r}; it must be a number above 0, or 'auto'")
        if not 0 < quantile < 1:
            raise InvalidArgument(f"quantile is {quantile}; it must be above 0 and below 1")
        self._fixed = None if threshold == AUTO else float(threshold)
        self._history = AutoClip(quantile)
        self.steps = 0
        self.bites = 0

    @property
    def threshold(self) -> float:
        """The norm at which gradients are clipped; infinite before the first step of "auto"."""
        return self._history.threshold if self._fixed is None else self._fixed

    @torch.no_grad()
    def __call__(self, parameters: Iterable[Tensor]) -> float:
        """Clip the gradients of these parameters; their norm before. One not finite is left."""
        held = list(parameters)
        found = total_norm(held)
        norm = 0.0 if found is None else float(found)
        if not math.isfinite(norm):
            return norm
        if self._fixed is None:
            self._history.observe(norm)
        self.steps += 1
        if norm > self.threshold:
            self.bites += 1
            gradients = [one.grad for one in held if one.grad is not None]
            torch._foreach_mul_(gradients, self.threshold / norm)
        return norm

    def state_dict(self) -> dict[str, Any]:
        """The history of norms and the counts, as plain numbers."""
        return {"steps": self.steps, "bites": self.bites, "norms": self._history.state()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state_dict()`; anything else is an InvalidArgument, and changes nothing."""
        counts = [state.get("steps"), state.get("bites")] if isinstance(state, dict) else [None]
        if not all(type(count) is int and count >= 0 for count in counts):
            raise InvalidArgument(f"{str(state)[:100]} is no state of gst.Clip")
        self._history.restore(state.get("norms"))
        self.steps, self.bites = counts  # type: ignore[assignment]
