"""Whole tensors in one number: whether all is finite, lengths, inner products.

On the CPU in double precision and without a copy: a judged step asks for them about a dozen times,
and PyTorch's way would cost more than the judging.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradsieve.kernel import vectors

_FLOATS = (torch.float32, torch.float64)


def all_finite(tensors: Sequence[Tensor]) -> bool:
    """Whether no value is infinite or NaN."""
    # One pass without a temporary; a finite sum has no value that is not.
    if all(one.device.type == "cpu" for one in tensors):
        finite = math.isfinite(sum([one.sum().item() for one in tensors]))
    else:  # one wait for the device
        device = tensors[0].device
        finite = bool(torch.stack([one.sum().to(device) for one in tensors]).sum().isfinite())
    return finite or all(bool(one.isfinite().all()) for one in tensors)


def length(tensor: Tensor) -> float:
    """The Euclidean norm."""
    flat = _flat(tensor)
    if flat is not None:
        return vectors.norm(flat)
    return math.sqrt(float(tensor.detach().double().square().sum()))


def products(one: Tensor, other: Tensor) -> tuple[float, float]:
    """⟨one, other⟩ and ‖one‖²."""
    left, right = _flat(one), _flat(other)
    if left is not None and right is not None and one.dtype == other.dtype:
        return vectors.products(left, right)
    wide = one.detach().double()
    return float((wide * other.detach()).sum()), float(wide.square().sum())


def _flat(tensor: Tensor) -> Any:
    """As the kernel takes it; None for another device or precision."""
    if tensor.device.type != "cpu" or tensor.dtype not in _FLOATS or not tensor.is_contiguous():
        return None
    return tensor.detach().view(-1).numpy()
