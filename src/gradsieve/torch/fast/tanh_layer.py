"""One tanh layer by the compiled kernel, behind autograd: from u to z, and all its gradients.

It is there twice. `tanh_layer` and `tanh_gradients` are operators of `torch.library`, which
`torch.compile`, tracing and `opcheck` know. Their way through PyTorch's
dispatcher takes about as long as their work at 100 units, so an ordinary call, which nothing traces
or transforms, is one `autograd.Function` around the same two functions.

Slopes are 1 − z², as in `nn.RNN`. It cannot be differentiated twice: that raises an error.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn

from gradsieve.torch import kernel_bridge

Gradients = tuple[Tensor | None, ...]  # of δ (for u), initial, weight_ih, weight_hh, bias

_PLAIN = (Tensor, nn.Parameter)


def apply(
    u: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    initial: Tensor | None = None,
    bias_ih: Tensor | None = None,
    bias_hh: Tensor | None = None,
) -> Tensor:
    """States z(n) = tanh(u(n) W_ihᵀ + z(n−1) W_hhᵀ + b_ih + b_hh), (T,B,H), from z(0) or zero."""
    inputs = (u, weight_ih, weight_hh, initial, bias_ih, bias_hh)
    if _ordinary(*inputs):
        return cast("Tensor", _TanhLayer.apply(*inputs))  # type: ignore[no-untyped-call]
    return cast("Tensor", tanh_layer(*inputs))


@torch.library.custom_op("gradsieve::tanh_layer", mutates_args=())
def tanh_layer(
    u: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    initial: Tensor | None,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
) -> Tensor:
    """`apply` as an operator."""
    return kernel_bridge.tanh_layer(u, weight_ih, weight_hh, initial, bias_ih, bias_hh)


@tanh_layer.register_fake
def _(
    u: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    initial: Tensor | None,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
) -> Tensor:
    return u.new_empty((u.shape[0], u.shape[1], weight_hh.shape[0]))


@torch.library.custom_op("gradsieve::tanh_gradients", mutates_args=())
def tanh_gradients(
    by_z: Tensor, z: Tensor, u: Tensor, weight_hh: Tensor, initial: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """∂E/∂ of the products (δ), initial state, weight_ih, weight_hh and either bias."""
    return kernel_bridge.tanh_gradients(by_z, z, u, weight_hh, initial, (True,) * 5)  # type: ignore[return-value]


@tanh_gradients.register_fake
def _(
    by_z: Tensor, z: Tensor, u: Tensor, weight_hh: Tensor, initial: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    hidden = z.shape[2]
    shapes = (z.shape, z.shape[1:], (hidden, u.shape[2]), (hidden, hidden), (hidden,))
    delta, by_initial, by_ih, by_hh, by_bias = (z.new_empty(shape) for shape in shapes)
    return delta, by_initial, by_ih, by_hh, by_bias


def _remember(ctx: Any, inputs: tuple[Tensor | None, ...], output: Tensor) -> None:
    u, weight_ih, weight_hh, initial, *_ = inputs
    ctx.save_for_backward(u, weight_ih, weight_hh, initial, output)


def _all_gradients(ctx: Any, by_z: Tensor) -> Gradients:
    u, weight_ih, weight_hh, initial, z = ctx.saved_tensors
    delta, by_initial, by_ih, by_hh, by_bias = tanh_gradients(by_z, z, u, weight_hh, initial)
    needed = ctx.needs_input_grad
    found = (delta @ weight_ih, by_ih, by_hh, by_initial, by_bias, by_bias)
    return tuple(one if need else None for one, need in zip(found, needed, strict=True))


tanh_layer.register_autograd(_all_gradients, setup_context=_remember)


class _TanhLayer(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        z = kernel_bridge.tanh_layer(*inputs)
        _remember(ctx, inputs, z)
        return z

    @staticmethod
    def backward(ctx: Any, by_z: Tensor) -> Gradients:
        if torch.is_grad_enabled() or not _ordinary(by_z):
            return _all_gradients(ctx, by_z)
        u, weight_ih, weight_hh, initial, z = ctx.saved_tensors
        by_u, ih, hh, start, b_ih, b_hh = ctx.needs_input_grad
        delta, by_initial, by_ih, by_hh, by_bias = kernel_bridge.tanh_gradients(
            by_z, z, u, weight_hh, initial, (by_u, start, ih, hh, b_ih or b_hh)
        )
        return (
            None if delta is None else delta @ weight_ih,
            by_ih,
            by_hh,
            by_initial,
            by_bias if b_ih else None,
            by_bias if b_hh else None,
        )


def _ordinary(*tensors: Tensor | None) -> bool:
    """Whether these are plain tensors, and nothing traces or transforms what is done to them."""
    if (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
    ):
        return False
    for tensor in tensors:
        if tensor is not None and (type(tensor) not in _PLAIN or tensor.is_neg()):
            return False
    return True
