"""`gst.RNN`, `gst.GRU`, `gst.LSTM`: PyTorch's modules with time loops in the compiled kernel.

They are subclasses that compute the same from the same parameters. Where the kernel cannot serve a
call, they do what their base class does: on another device than the CPU, in other precisions than
float32 and float64, with relu or a projection, under autocast and the transforms of `torch.func`,
and for inputs that do not fit, so that errors are PyTorch's own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradsieve.torch.fast import layer
from gradsieve.torch.fast.layer import LayerCall
from gradsieve.torch.kernel_bridge import serves

Model = TypeVar("Model", bound=nn.Module)
State = tuple[Tensor, ...]  # (h,), or (h, c) of an LSTM, each (layers · directions, B, H)


class _Kernel(nn.RNNBase):
    """`forward` by the kernel, for whichever class of PyTorch's comes next."""

    _cell: str

    def forward(self, input: Any, hx: Any = None) -> Any:
        packed = isinstance(input, PackedSequence)
        data = input.data if packed else input
        weights = self._weights() if isinstance(data, Tensor) else []
        if not weights or not _follows(self, data, weights, packed):
            return super().forward(input, hx)
        if packed:
            return self._packed(input, hx, weights)
        batched = data.dim() == 3
        u = data.unsqueeze(1) if not batched else data.transpose(0, 1) if self.batch_first else data
        given = _given(hx)
        if not batched:
            given = tuple(part.unsqueeze(1) for part in given)
        if not _fit(self, given, u, u.shape[1]):
            return super().forward(input, hx)
        h, last = self._layers(u, given, weights, None)
        if not batched:
            return h.squeeze(1), self._state([part.squeeze(1) for part in last])
        return h.transpose(0, 1) if self.batch_first else h, self._state(last)

    def _weights(self) -> list[list[Tensor]]:
        """Those of each layer and direction; none where the kernel has not this cell.

        Asked for by name: PyTorch's list of them does not follow `functional_call`.
        """
        if not _has_kernel(self):
            return []
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _packed(self, input: PackedSequence, hx: Any, weights: list[list[Tensor]]) -> Any:
        data, sizes, order, back = input
        given = _given(hx)
        if not _fit(self, given, data, int(sizes[0])):
            return super().forward(cast("Any", input), hx)
        if order is not None:
            given = tuple(part.index_select(1, order) for part in given)
        h, last = self._layers(data, given, weights, sizes)
        if back is not None:
            last = [part.index_select(1, back) for part in last]
        return PackedSequence(h, sizes, order, back), self._state(last)

    def _layers(
        self, u: Tensor, initial: State, weights: list[list[Tensor]], sizes: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """Outputs of the highest layer, and the last states of all."""
        directions = 2 if self.bidirectional else 1
        batch = 0 if sizes is None else int(sizes[0])
        ends = []
        for index in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                place = index * directions + direction
                call = LayerCall(self._cell, sizes, batch, direction == 1)
                h, h_last, c_last = layer.apply(
                    call, u, weights[place], [part[place] for part in initial]
                )
                outputs.append(h)
                ends.append((h_last,) if c_last is None else (h_last, c_last))
            u = outputs[0] if directions == 1 else torch.cat(outputs, dim=-1)
            if self.dropout and self.training and index < self.num_layers - 1:
                u = nn.functional.dropout(u, self.dropout)
        if len(ends) == 1:
            return u, [part.unsqueeze(0) for part in ends[0]]
        return u, [torch.stack(parts) for parts in zip(*ends, strict=True)]

    def _state(self, parts: Sequence[Tensor]) -> Any:
        return parts[0] if len(parts) == 1 else tuple(parts)


def _as_pytorch_has_it() -> None:
    """Let a model under `torch.compile` run these modules as it runs `nn.RNN`: uncompiled.

    Dynamo breaks its graph at every `nn.RNN`. What stands inside of it, being PyTorch's, it leaves
    alone; of ours it would compile each function by itself, again for every new call. Where
    `torch._dynamo.config.allow_rnn` lets a graph go through, it still does.
    """
    try:
        from torch._C._dynamo.eval_frame import (
            _FrameAction,
            _FrameExecStrategy,
            set_code_exec_strategy,
        )
    except ImportError:  # an older PyTorch
        return
    skip = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    set_code_exec_strategy(_Kernel.forward.__code__, skip)


_as_pytorch_has_it()


class RNN(_Kernel, nn.RNN):
    """`nn.RNN` for the CPU: same arguments, outputs and `state_dict`, several times faster.

    >>> import torch
    >>> module = RNN(6, 100)
    >>> outputs, last = module(torch.randn(20, 4, 6))
    >>> outputs.shape, last.shape
    (torch.Size([20, 4, 100]), torch.Size([1, 4, 100]))
    """

    _cell = "tanh"


class GRU(_Kernel, nn.GRU):
    """`nn.GRU` for the CPU: same arguments, outputs and `state_dict`, several times faster.

    >>> import torch
    >>> GRU(6, 100, num_layers=2, bidirectional=True)(torch.randn(20, 4, 6))[0].shape
    torch.Size([20, 4, 200])
    """

    _cell = "gru"


class LSTM(_Kernel, nn.LSTM):
    """`nn.LSTM` for the CPU: same arguments, outputs and `state_dict`, faster.

    >>> import torch
    >>> outputs, (h, c) = LSTM(6, 100, batch_first=True)(torch.randn(4, 20, 6))
    >>> outputs.shape, c.shape
    (torch.Size([4, 20, 100]), torch.Size([1, 4, 100]))
    """

    _cell = "lstm"


class SRN(RNN):
    """The former name of `gst.RNN` with one layer; it goes in the next release."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, batch_first: bool = False,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        warnings.warn("gst.SRN is now gst.RNN", DeprecationWarning, stacklevel=2)
        super().__init__(
            input_size, hidden_size, bias=bias, batch_first=batch_first, device=device, dtype=dtype
        )


_FAST: dict[type[nn.RNNBase], type[nn.RNNBase]] = {nn.RNN: RNN, nn.GRU: GRU, nn.LSTM: LSTM}
_PLAIN: dict[type[nn.RNNBase], type[nn.RNNBase]] = {fast: own for own, fast in _FAST.items()}


def accelerate(model: Model, off: bool = False) -> Model:
    """Turn every `nn.RNN`, `nn.GRU` and `nn.LSTM` of a model into ours, in place; or back.

    The modules stay the same objects with the same parameters, hooks and buffers; only their class
    changes. So an optimizer made before still moves them. Modules with relu or a projection stay as
    they are.

    >>> model = nn.Sequential(nn.GRU(3, 8))
    >>> accelerate(model)
    Sequential(
      (0): GRU(3, 8)
    )
    >>> type(model[0]).__module__
    'gradsieve.torch.fast.modules'
    >>> type(accelerate(model, off=True)[0]) is nn.GRU
    True
    """
    classes = _PLAIN if off else _FAST
    for module in model.modules():
        other = classes.get(cast("type[nn.RNNBase]", type(module)))
        if other is not None and (off or _has_kernel(cast("nn.RNNBase", module))):
            module.__class__ = other
    return model


def _has_kernel(module: nn.RNNBase) -> bool:
    return module.mode != "RNN_RELU" and not module.proj_size


def _follows(module: nn.RNNBase, data: Tensor, weights: list[list[Tensor]], packed: bool) -> bool:
    """Whether the kernel can go through this input with the weights of this module."""
    return (
        data.dim() in ((2,) if packed else (2, 3))
        and data.shape[-1] == module.input_size
        and 0 not in data.shape
        and not torch.is_autocast_enabled("cpu")
        and serves(data, *[own[1] for own in weights])
    )


def _given(hx: Any) -> State:
    return () if hx is None else (hx,) if isinstance(hx, Tensor) else tuple(hx)


def _fit(module: nn.RNNBase, initial: State, u: Tensor, batch: int) -> bool:
    """Whether the initial state is that of this module and this batch."""
    directions = 2 if module.bidirectional else 1
    shape = (module.num_layers * directions, batch, module.hidden_size)
    parts = 2 if module.mode == "LSTM" else 1
    return not initial or (
        len(initial) == parts
        and all(part.shape == shape and part.dtype == u.dtype for part in initial)
    )
