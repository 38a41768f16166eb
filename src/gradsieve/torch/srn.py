"""`gst.SRN`: a drop-in for a one-layer tanh `nn.RNN` whose time loops run in the compiled kernel.

Forward and backward through time are two operators of `torch.library`, so that autograd, autocast
rules, `torch.compile` and `opcheck` know them. The products that need no loop (u W_ihᵀ, the weight
gradients) are PyTorch's own. On another device than the CPU, and in other precisions than float32
and float64, the module does what `nn.RNN` does.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradsieve.errors import InvalidArgument
from gradsieve.kernel import _native


@torch.library.custom_op("gradsieve::tanh_layer", mutates_args=())
def tanh_layer(x: Tensor, initial: Tensor, weight_hh: Tensor) -> tuple[Tensor, Tensor]:
    """States z(n) = tanh(x(n) + z(n−1) W_hhᵀ) and slopes 1 − z², (T,B,H) each."""
    z, slopes = (torch.empty(x.shape, dtype=x.dtype) for _ in range(2))
    _native.tanh_layer(_array(x), _array(initial), _array(weight_hh), z.numpy(), slopes.numpy())
    return z, slopes


@tanh_layer.register_fake
def _(x: Tensor, initial: Tensor, weight_hh: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.shape)


@torch.library.custom_op("gradsieve::tanh_deltas", mutates_args=())
def tanh_deltas(by_z: Tensor, slopes: Tensor, weight_hh: Tensor) -> tuple[Tensor, Tensor]:
    """δ(n) = ∂E/∂x(n), (T,B,H), and ∂E/∂z(0), from the gradients by every z."""
    delta = torch.empty(by_z.shape, dtype=by_z.dtype)
    by_initial = torch.empty(by_z.shape[1:], dtype=by_z.dtype)
    _native.tanh_deltas(
        _array(by_z), _array(slopes), _array(weight_hh), delta.numpy(), by_initial.numpy()
    )
    return delta, by_initial


@tanh_deltas.register_fake
def _(by_z: Tensor, slopes: Tensor, weight_hh: Tensor) -> tuple[Tensor, Tensor]:
    return by_z.new_empty(by_z.shape), by_z.new_empty(by_z.shape[1:])


def _remember(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    _, initial, weight_hh = inputs
    z, slopes = output
    ctx.save_for_backward(z, slopes, initial, weight_hh)
    ctx.mark_non_differentiable(slopes)
    ctx.set_materialize_grads(False)


def _backward(
    ctx: Any, by_z: Tensor | None, _by_slopes: Tensor | None
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    if by_z is None:
        return None, None, None
    z, slopes, initial, weight_hh = ctx.saved_tensors
    delta, by_initial = tanh_deltas(by_z, slopes, weight_hh)
    by_weight = None
    if ctx.needs_input_grad[2]:
        by_weight = delta[0].T @ initial
        if z.shape[0] > 1:
            by_weight = torch.addmm(by_weight, delta[1:].flatten(0, 1).T, z[:-1].flatten(0, 1))
    return delta, by_initial, by_weight


tanh_layer.register_autograd(_backward, setup_context=_remember)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().contiguous().numpy()


class SRN(nn.RNN):
    """A one-layer tanh `nn.RNN` for the CPU: same call, same `state_dict`, several times faster.

    >>> import torch
    >>> layer = SRN(6, 100)
    >>> outputs, last = layer(torch.randn(20, 4, 6))
    >>> outputs.shape, last.shape
    (torch.Size([20, 4, 100]), torch.Size([1, 4, 100]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        batch_first: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if size < 1:
                raise InvalidArgument(f"{name} is {size}; it must be at least 1")
        super().__init__(
            input_size, hidden_size, bias=bias, batch_first=batch_first, device=device, dtype=dtype
        )

    def forward(self, input: Any, hx: Tensor | None = None) -> Any:
        weight = self.weight_hh_l0
        native = (
            isinstance(input, Tensor)
            and not isinstance(input, PackedSequence)
            and input.device.type == weight.device.type == "cpu"
            and input.dtype == weight.dtype
            and weight.dtype in (torch.float32, torch.float64)
            and not torch.is_autocast_enabled("cpu")
        )
        return self._forward(input, hx) if native else super().forward(input, hx)

    def _forward(self, u: Tensor, hx: Tensor | None) -> tuple[Tensor, Tensor]:
        if u.dim() not in (2, 3) or u.shape[-1] != self.input_size:
            raise InvalidArgument(
                f"input has shape {tuple(u.shape)}; it must have 2 or 3 axes, the last of "
                f"{self.input_size}"
            )
        batched = u.dim() == 3
        if not batched:
            u = u.unsqueeze(1)
            hx = None if hx is None else hx.unsqueeze(1)
        elif self.batch_first:
            u = u.transpose(0, 1)
        if 0 in u.shape:
            raise InvalidArgument(f"input has shape {tuple(u.shape)}; no axis may be empty")
        expected = (1, u.shape[1], self.hidden_size)
        if hx is not None and tuple(hx.shape) != expected:
            raise InvalidArgument(f"hx has shape {tuple(hx.shape)}; it must be {expected}")
        initial = u.new_zeros(expected[1:]) if hx is None else hx[0]
        weight_ih, weight_hh, *biases = cast("list[Tensor]", self._flat_weights)
        x = nn.functional.linear(u, weight_ih, biases[0] + biases[1] if biases else None)
        outputs, _ = tanh_layer(x, initial, weight_hh)
        last = outputs[-1:]
        if not batched:
            return outputs.squeeze(1), last.squeeze(1)
        return (outputs.transpose(0, 1) if self.batch_first else outputs), last
