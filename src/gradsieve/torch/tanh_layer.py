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

from gradsieve.errors import InvalidArgument
from gradsieve.kernel import _native

Gradients = tuple[Tensor | None, ...]  # of δ (for u), initial, weight_ih, weight_hh, bias

_PLAIN = (Tensor, nn.Parameter)
_FORWARD = {torch.float32: _native.tanh_layer32, torch.float64: _native.tanh_layer64}
_BACKWARD = {torch.float32: _native.tanh_gradients32, torch.float64: _native.tanh_gradients64}


def usable() -> bool:
    """Not under vmap, grad … of `torch.func`, which do not go through operators of one's own."""
    return torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active()


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
    return _forward(u, weight_ih, weight_hh, initial, bias_ih, bias_hh)


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
    return _backward(by_z, z, u, weight_hh, initial, (True,) * 5)  # type: ignore[return-value]


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
        z = _forward(*inputs)
        _remember(ctx, inputs, z)
        return z

    @staticmethod
    def backward(ctx: Any, by_z: Tensor) -> Gradients:
        if torch.is_grad_enabled() or not _ordinary(by_z):
            return _all_gradients(ctx, by_z)
        u, weight_ih, weight_hh, initial, z = ctx.saved_tensors
        by_u, ih, hh, start, b_ih, b_hh = ctx.needs_input_grad
        delta, by_initial, by_ih, by_hh, by_bias = _backward(
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


def _forward(
    u: Tensor,
    weight_ih: Tensor,
    weight_hh: Tensor,
    initial: Tensor | None,
    bias_ih: Tensor | None,
    bias_hh: Tensor | None,
) -> Tensor:
    steps, batch, width = u.shape
    hidden = weight_hh.shape[0]
    z = torch.empty((steps, batch, hidden), dtype=u.dtype)
    arrays = (
        checked("u", u, z, (steps, batch, width)),
        checked("weight_ih", weight_ih, z, (hidden, width)),
        checked("weight_hh", weight_hh, z, (hidden, hidden)),
        checked("initial", initial, z, (batch, hidden)),
        checked("bias_ih", bias_ih, z, (hidden,)),
        checked("bias_hh", bias_hh, z, (hidden,)),
        z,
    )
    _FORWARD[z.dtype](steps, batch, width, hidden, *map(address, arrays))
    return z


def _backward(
    by_z: Tensor,
    z: Tensor,
    u: Tensor,
    weight_hh: Tensor,
    initial: Tensor | None,
    needed: tuple[bool, ...],
) -> Gradients:
    steps, batch, width = u.shape
    hidden = weight_hh.shape[0]
    shapes = ((steps, batch, hidden), (batch, hidden), (hidden, width), (hidden, hidden), (hidden,))
    found = tuple(
        torch.empty(shape, dtype=z.dtype) if need else None
        for shape, need in zip(shapes, needed, strict=True)
    )
    arrays = (
        checked("by_z", by_z, z, shapes[0]),
        checked("z", z, z, shapes[0]),
        checked("u", u, z, (steps, batch, width)),
        checked("weight_hh", weight_hh, z, shapes[3]),
        checked("initial", initial, z, shapes[1]),
        *found,
    )
    _BACKWARD[z.dtype](steps, batch, width, hidden, *map(address, arrays))
    return found


def checked(
    name: str, tensor: Tensor | None, like: Tensor, shape: tuple[int, ...]
) -> Tensor | None:
    """A tensor whose memory the kernel may read as it stands."""
    if tensor is None:
        return None
    if tensor.shape != shape or tensor.dtype != like.dtype or not tensor.is_cpu:
        raise InvalidArgument(
            f"{name} is {tuple(tensor.shape)} {tensor.dtype} on {tensor.device}; it must be "
            f"{tuple(shape)} {like.dtype} on the CPU"
        )
    return tensor.contiguous()


def address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
