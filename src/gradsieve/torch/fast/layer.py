"""One recurrent layer in one direction by the compiled kernel, behind autograd.

It is there twice. `recurrent` and `recurrent_gradients` are operators of `torch.library`, which
`torch.compile`, tracing and `opcheck` know. Their way through PyTorch's dispatcher takes as long as
a good part of their work at 100 units, so an ordinary call, which nothing traces or transforms, is
one `autograd.Function` around the same two functions of the kernel.

The equations are those of `nn.RNN` (tanh), `nn.GRU` and `nn.LSTM`. They cannot be differentiated
twice: that raises an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch._C import _to_dlpack as to_dlpack
from torch.autograd.function import once_differentiable

from gradsieve.errors import InvalidArgument
from gradsieve.kernel import recursions

_PLAIN = (Tensor, nn.Parameter)


class LayerCall(NamedTuple):
    """What a call of a layer is, beside its tensors.

    `batch_sizes` counts the sequences of each step, as a `PackedSequence` does, and `batch` is the
    first of them; None where all sequences have one length.
    """

    cell: str
    batch_sizes: Tensor | None = None
    batch: int = 0
    reverse: bool = False


def apply(
    layer: LayerCall, u: Tensor, weights: Sequence[Tensor], initial: Sequence[Tensor] = ()
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Outputs h (T,B,H), or (rows,H) of packed sequences, and the last h and c (B,H).

    `weights` are weight_ih, weight_hh and, if there are any, bias_ih and bias_hh; `initial` is
    nothing, (h,) or (h, c). The last c is None but for an LSTM.
    """
    tensors = (u, *weights, *initial)
    learns = torch.is_grad_enabled() and any(one.requires_grad for one in tensors)
    if not _ordinary(*tensors):
        cell, sizes, batch, reverse = layer
        h, h_last, c_last, *_ = recurrent(
            cell, u, list(weights), list(initial), sizes, batch, reverse, learns
        )
        return h, h_last, c_last if layer.cell == "lstm" else None
    if not learns:
        h, h_last, c_last, *_ = _forward(layer, u, weights, initial, False)
        return h, h_last, c_last
    found: tuple[Tensor, Tensor, Tensor | None] = _Recurrent.apply(  # type: ignore[no-untyped-call]
        layer, len(weights), *tensors
    )
    return found


class _Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layer: LayerCall, count: int, u: Tensor, *others: Tensor) -> Any:
        weights, initial = others[:count], others[count:]
        h, h_last, c_last, gates, c = _forward(layer, u, weights, initial, True)
        ctx.layer, ctx.count, ctx.follower = layer, count, None
        ctx.save_for_backward(h, gates, c, u, *others)
        ctx.set_materialize_grads(False)
        return h, h_last, c_last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *seeds: Tensor | None) -> Any:
        h, gates, c, u, *others = ctx.saved_tensors
        weights, initial = others[: ctx.count], others[ctx.count :]
        needed = ctx.needs_input_grad[2:]
        if all(seed is None for seed in seeds):
            return (None,) * (2 + len(needed))
        followed = None
        if ctx.follower is not None:
            begun = tuple([one.detach() for one in initial])
            # Detached: outputs that know their graph, held by a part of it, would never be freed.
            passes = Passes(ctx.layer.cell, u.detach(), h.detach(), gates, c, weights, begun)
            followed = ctx.follower.follow(passes)
        found, alone = _backward(
            ctx.layer, seeds, (h, gates, c), u, weights, initial, needed, followed
        )
        if followed is not None:
            ctx.follower.followed(alone)
        return None, None, *found


class Passes(NamedTuple):
    """What one call of a layer has from its own forward pass, for its backward pass or a judge."""

    cell: str
    u: Tensor  # (T,B,I)
    h: Tensor  # (T,B,H)
    gates: Tensor | None  # (T,B,4,H)
    c: Tensor | None  # (T,B,H)
    weights: Sequence[Tensor]  # weight_ih, weight_hh and, if there are any, the biases
    initial: Sequence[Tensor]


class Follower(Protocol):
    """Is handed the deltas of one call on its way back, in a linearised layer of the kernel's."""

    def follow(self, passes: Passes) -> Any:
        """Where the deltas shall go; None for nowhere."""
        ...

    def followed(self, alone: bool) -> None:
        """They are there; `alone`: a gradient came to one step of each sequence only."""
        ...


def let_follow(outputs: Tensor, follower: Follower, batch_first: bool) -> None:
    """Hand `follower` the deltas of the one layer that these outputs are of, if that can be."""
    node: Any = outputs.grad_fn
    if batch_first and node is not None and node.name() == "TransposeBackward0":
        node = node.next_functions[0][0]
    kind: Any = _Recurrent._backward_cls
    if isinstance(node, kind) and node.layer.batch_sizes is None:
        node.follower = follower


@torch.library.custom_op("gradsieve::recurrent", mutates_args=())
def recurrent(
    cell: str,
    u: Tensor,
    weights: Sequence[Tensor],
    initial: Sequence[Tensor],
    batch_sizes: Tensor | None,
    batch: int,
    reverse: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """`apply` as an operator: h, last h, last c, and what it keeps for `recurrent_gradients`."""
    found = _forward(LayerCall(cell, batch_sizes, batch, reverse), u, weights, initial, keep)
    h, h_last, c_last, gates, c = (u.new_empty(0) if one is None else one for one in found)
    return h, h_last, c_last, gates, c


@recurrent.register_fake
def _(
    cell: str,
    u: Tensor,
    weights: Sequence[Tensor],
    initial: Sequence[Tensor],
    batch_sizes: Tensor | None,
    batch: int,
    reverse: bool,
    keep: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    layer = LayerCall(cell, batch_sizes, batch)
    shapes = _shapes(layer, u, weights[1].shape[1], keep)
    h, h_last, c_last, gates, c = (u.new_empty(0 if shape is None else shape) for shape in shapes)
    return h, h_last, c_last, gates, c


@torch.library.custom_op("gradsieve::recurrent_gradients", mutates_args=())
def recurrent_gradients(
    cell: str,
    seeds: Sequence[Tensor | None],
    states: Sequence[Tensor],
    u: Tensor,
    weights: Sequence[Tensor],
    initial: Sequence[Tensor],
    batch_sizes: Tensor | None,
    reverse: bool,
) -> list[Tensor]:
    """Gradients by u, weights and initial, from those by h, last h and last c."""
    every = (True,) * (1 + len(weights) + len(initial))
    layer = LayerCall(cell, batch_sizes, reverse=reverse)
    found, _ = _backward(layer, seeds, states, u, weights, initial, every)
    return found  # type: ignore[return-value]


@recurrent_gradients.register_fake
def _(
    cell: str,
    seeds: Sequence[Tensor | None],
    states: Sequence[Tensor],
    u: Tensor,
    weights: Sequence[Tensor],
    initial: Sequence[Tensor],
    batch_sizes: Tensor | None,
    reverse: bool,
) -> list[Tensor]:
    return [one.new_empty(one.shape) for one in (u, *weights, *initial)]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.cell, u, weights, initial, batch_sizes, _, ctx.reverse, _ = inputs
    h, _, _, gates, c = output
    ctx.count = len(weights)
    ctx.save_for_backward(h, gates, c, u, batch_sizes, *weights, *initial)
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, *by_outputs: Tensor | None) -> Any:
    h, gates, c, u, batch_sizes, *others = ctx.saved_tensors
    weights, initial = others[: ctx.count], others[ctx.count :]
    seeds, states = list(by_outputs[:3]), [h, gates, c]
    if ctx.cell != "lstm":
        seeds[2] = None
    by_u, *by_others = recurrent_gradients(
        ctx.cell, seeds, states, u, weights, initial, batch_sizes, ctx.reverse
    )
    return None, by_u, by_others[: ctx.count], by_others[ctx.count :], None, None, None, None


recurrent.register_autograd(_gradients, setup_context=_remember)


def _shapes(layer: LayerCall, u: Tensor, hidden: int, keep: bool) -> list[tuple[int, ...] | None]:
    """Of h, last h, last c, gates and c; None for what there is not."""
    rows, lstm = u.shape[:-1], layer.cell == "lstm"
    last = (u.shape[1] if layer.batch_sizes is None else layer.batch, hidden)
    gates = (*rows, 4, hidden) if keep and layer.cell != "tanh" else None
    c = (*rows, hidden) if keep and lstm else None
    return [(*rows, hidden), last, last if lstm else None, gates, c]


def _forward(
    layer: LayerCall, u: Tensor, weights: Sequence[Tensor], initial: Sequence[Tensor], keep: bool
) -> tuple[Any, ...]:
    hidden = weights[1].shape[-1]
    found = [
        None if shape is None else u.new_empty(shape) for shape in _shapes(layer, u, hidden, keep)
    ]
    h, h_last, c_last, gates, c = found
    _call(recursions.recurrent_forward, layer, u, weights, initial, (h, gates, c, h_last, c_last))
    return tuple(found)


def _backward(
    layer: LayerCall,
    seeds: Sequence[Tensor | None],
    states: Sequence[Tensor | None],
    u: Tensor,
    weights: Sequence[Tensor],
    initial: Sequence[Tensor],
    needed: Sequence[bool],
    followed: Any = None,
) -> tuple[list[Tensor | None], bool]:
    """Gradients by u, weights and initial, where needed; and what the kernel says of `followed`."""
    given = (u, *weights, *initial)
    found = [
        torch.empty(one.shape, dtype=one.dtype) if need else None
        for one, need in zip(given, needed, strict=True)
    ]
    by_u, *others = found
    by_weights, by_initial = others[: len(weights)], others[len(weights) :]
    out = (by_u, *_filled(by_initial, 2), *_filled(by_weights, 4))
    h, gates, c = states
    kept = (h, gates if layer.cell != "tanh" else None, c if layer.cell == "lstm" else None)
    entering = tuple([None if one is None else one.contiguous() for one in seeds])
    arrays = kept, entering, out
    alone = _call(
        recursions.recurrent_backward, layer, u, weights, initial, *arrays, followed=followed
    )
    return found, alone


def _call(
    entry: Any,
    layer: LayerCall,
    u: Tensor,
    weights: Sequence[Tensor],
    initial: Sequence[Tensor],
    *others: tuple[Tensor | None, ...],
    **further: Any,
) -> Any:
    """Call the kernel, which checks every array."""
    sizes = layer.batch_sizes
    try:
        return entry(
            layer.cell,
            to_dlpack(u.contiguous()),
            _arrays(_filled([one.contiguous() for one in weights], 4)),
            _arrays(_filled([one.contiguous() for one in initial], 2)),
            None if sizes is None else to_dlpack(sizes.contiguous()),
            layer.reverse,
            *map(_arrays, others),
            **further,
        )
    except (TypeError, ValueError) as error:
        raise InvalidArgument(str(error)) from error


def _arrays(tensors: Sequence[Tensor | None]) -> tuple[Any, ...]:
    return tuple([None if one is None else to_dlpack(one) for one in tensors])


def _filled(tensors: Sequence[Tensor | None], length: int) -> tuple[Tensor | None, ...]:
    return (*tensors, *(None,) * (length - len(tensors)))


def _ordinary(*tensors: Tensor) -> bool:
    """Whether these are plain tensors, and nothing traces or transforms what is done to them."""
    if (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
    ):
        return False
    return all(type(tensor) in _PLAIN and not tensor.is_neg() for tensor in tensors)
