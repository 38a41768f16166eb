"""Products over all steps at once, by the compiled kernel on the CPU and by PyTorch elsewhere."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradsieve.kernel import _native


def add_up(out: Tensor, left: list[Tensor], right: list[Tensor], bias: Tensor | None) -> None:
    """out = bias + the sum of A Wᵀ over two factors; out is (N,M), A (N,·), W (M,·)."""
    if usable(out):
        arrays = [_array(one) for one in left], [_array(one) for one in right]
        _native.products(out.numpy(), *arrays, True, None if bias is None else _array(bias))
        return
    torch.mm(left[0], right[0].T, out=out)
    out.addmm_(left[1], right[1].T)
    if bias is not None:
        out.add_(bias)


def multiply(out: Tensor, left: Tensor, right: Tensor) -> None:
    """out = A W."""
    if usable(out):
        _native.products(out.numpy(), [_array(left)], [_array(right)], False, None)
    else:
        torch.mm(left, right, out=out)


def usable(like: Tensor) -> bool:
    return like.device.type == "cpu" and like.dtype in (torch.float32, torch.float64)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()
