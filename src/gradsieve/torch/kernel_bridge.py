"""Where the compiled kernel can be used on tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

_FLOATS = (torch.float32, torch.float64)


_left_out = False  # a plain value: dynamo, which traces `serves`, knows no ContextVar


@contextmanager
def without_kernel() -> Iterator[None]:
    """Within it, the CPU takes the way of the other devices, so that it can be compared."""
    global _left_out
    before, _left_out = _left_out, True
    try:
        yield
    finally:
        _left_out = before


def serves(*tensors: Tensor) -> bool:
    """Whether the kernel can compute with these: on the CPU, all in float32 or all in float64.

    Not under vmap, grad … of `torch.func`, which do not go through operators of one's own.
    """
    first = tensors[0].dtype
    return (
        first in _FLOATS
        and not _left_out
        and all(tensor.device.type == "cpu" and tensor.dtype == first for tensor in tensors)
        and (torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active())
    )
