"""`gst.SRN`: a drop-in for a one-layer tanh `nn.RNN` whose time loops run in the compiled kernel.

On another device than the CPU, in other precisions than float32 and float64 and under the
transforms of `torch.func`, the module does what `nn.RNN` does. The arithmetic and its gradients are
in `gradsieve.torch.fast.tanh_layer`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gradsieve.errors import InvalidArgument
from gradsieve.torch.fast import tanh_layer
from gradsieve.torch.kernel_bridge import serves


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
        # Asked for by name: PyTorch's list of them does not follow torch.func.functional_call.
        weights: list[Any] = [self.weight_ih_l0, self.weight_hh_l0]
        if self.bias:
            weights += (self.bias_ih_l0, self.bias_hh_l0)
        native = (
            isinstance(input, Tensor)  # a PackedSequence is none
            and not torch.is_autocast_enabled("cpu")
            and serves(input, weights[1])
        )
        return self._forward(input, hx, weights) if native else super().forward(input, hx)

    def _forward(
        self, u: Tensor, hx: Tensor | None, weights: list[Tensor]
    ) -> tuple[Tensor, Tensor]:
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
        weight_ih, weight_hh, *biases = weights
        initial = None if hx is None else hx[0]
        states = tanh_layer.apply(u, weight_ih, weight_hh, initial, *biases)
        last = states.narrow(0, states.shape[0] - 1, 1)
        outputs = states.view_as(states)  # its gradient is its own, without that of `last`
        if not batched:
            return outputs.squeeze(1), last.squeeze(1)
        return (outputs.transpose(0, 1) if self.batch_first else outputs), last
