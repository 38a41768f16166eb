"""The compiled kernel's recursions, as tensors; `gradsieve.torch.fast.layer` has its layers.

Each function says what a readable one of `gradsieve.torch.evidence` says too, which serves other
devices and is the oracle of this one. `serves` tells where the kernel can be used.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradsieve.errors import InvalidArgument
from gradsieve.kernel import recursions as _native
from gradsieve.torch.memory import Memory

MOST_PARTS = 4  # of a cell's state
_FLOATS = (torch.float32, torch.float64)


_left_out: ContextVar[bool] = ContextVar("left_out", default=False)


@contextmanager
def without_kernel() -> Iterator[None]:
    """Within it, the CPU takes the way of the other devices, so that it can be compared."""
    token = _left_out.set(True)
    try:
        yield
    finally:
        _left_out.reset(token)


def serves(*tensors: Tensor) -> bool:
    """Whether the kernel can compute with these: on the CPU, all in float32 or all in float64.

    Not under vmap, grad … of `torch.func`, which do not go through operators of one's own.
    """
    first = tensors[0].dtype
    return (
        first in _FLOATS
        and not _left_out.get()
        and all(tensor.device.type == "cpu" and tensor.dtype == first for tensor in tensors)
        and (torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active())
    )


@dataclass(frozen=True)
class Tables:
    """A unitwise cell's Jacobians at every step: K (T,B,G,H), L (T,B,H), None where zero.

    `through` is ∂h/∂c of an LSTM, whose K and L are then those of `LSTMUnits`.
    """

    K: list[Tensor]
    L: list[Tensor | None]
    through: Tensor | None = None

    def arrays(self, weight_hh: Tensor) -> tuple[list[Any], list[Any], Any]:
        return [_array(one) for one in self.K], [_array(one) for one in self.L], _array(weight_hh)


@dataclass(frozen=True)
class Back:
    """What `pull` starts from; see `recursion.pull_back`."""

    injected: list[Tensor | None]
    injected_exponents: Tensor | None
    added_delta: Tensor | None
    added_state: list[Tensor | None]
    exponents: Tensor | None  # None where the kernel chooses them


def pull(
    tables: Tables,
    weight_hh: Tensor,
    back: Back,
    after: tuple[Tensor, ...],
    keep_g: bool,
    memory: Memory,
) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
    """δ, g and their exponents; δ takes the place of `added_delta`. `after` gives g its shapes."""
    steps, batch = after[-1].shape[:2]
    if back.added_delta is None:
        delta = memory.empty((steps, batch, *tables.K[0].shape[2:]), after[0])
    else:
        delta = back.added_delta.contiguous()
    g = tuple(memory.empty(part.shape, part) for part in after) if keep_g else ()
    chosen = torch.empty((steps, batch), dtype=torch.int32)
    if back.exponents is not None:
        chosen = back.exponents.contiguous()
    entering = back.injected_exponents
    _native.pull(
        *tables.arrays(weight_hh),
        [_array(part) for part in back.injected],
        None if entering is None else _array(entering.to(torch.int32)),
        None if back.added_delta is None else delta.numpy(),
        [_array(part) for part in back.added_state],
        chosen.numpy(),
        back.exponents is None,
        delta.numpy(),
        [part.numpy() for part in g] if keep_g else [None] * len(after),
        _array(tables.through),
    )
    return delta, g, chosen


def push(
    tables: Tables,
    weight_hh: Tensor,
    explicit: Tensor,
    R: tuple[Tensor, ...] | None,
    after: tuple[Tensor, ...],
    memory: Memory,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """da and ds(1) … ds(T), as `recursion.push_forward`; da takes the place of `explicit`."""
    ds = tuple(memory.empty(part.shape, part) for part in after)
    da = explicit.contiguous()
    _native.push(
        *tables.arrays(weight_hh),
        da.numpy(),
        [None] * len(ds) if R is None else [_array(part) for part in R],
        da.numpy(),
        [part.numpy() for part in ds],
        _array(tables.through),
    )
    return da, ds


def add_up(out: Tensor, left: list[Tensor], right: list[Tensor], bias: Tensor | None) -> None:
    """out = bias + Σ A Wᵀ; out is (N,M), each A (N,·), each W (M,·)."""
    arrays = [_array(one) for one in left], [_array(one) for one in right]
    _native.products(out.numpy(), *arrays, True, _array(bias))


def multiply(out: Tensor, left: Tensor, right: Tensor) -> None:
    """out = A W."""
    _native.products(out.numpy(), [_array(left)], [_array(right)], False, None)


class LSTMUnits:
    """Each unit of an LSTM at each step: its gates, c(0) … c(T), and its Jacobians.

    K holds ∂c/∂a for the gates input, forget and cell and ∂h/∂a for output; `through` is ∂h/∂c,
    `forget` is ∂c/∂c(n−1).
    """

    def __init__(self, v: Tensor, initial: Tensor, memory: Memory) -> None:
        """From the products v = x + a, (T,B,4,H), and c(0), (B,H)."""
        steps, batch, _, hidden = v.shape
        gates, state = v.shape, (steps, batch, hidden)
        self._memory = memory
        self._values, self.K = memory.empty(gates, v), memory.empty(gates, v)
        self._t = memory.empty(state, v)
        self.through, self.forget = memory.empty(state, v), memory.empty(state, v)
        self.c = memory.empty((steps + 1, batch, hidden), v)
        written = (self._values, self.c, self._t, self.K, self.through, self.forget)
        _native.lstm_units(_array(v), _array(initial), *(one.numpy() for one in written))

    @property
    def tables(self) -> Tables:
        return Tables([self.K], [self.forget], self.through)

    def jacobians(self) -> tuple[list[Tensor], list[list[Tensor | None]]]:
        """K and L as `gradsieve.torch.evidence.local` has them for any cell."""
        K_c = torch.cat([self.K[..., :3, :], torch.zeros_like(self.K[..., 3:, :])], dim=-2)
        K_h = torch.cat([self.through.unsqueeze(-2) * K_c[..., :3, :], self.K[..., 3:, :]], dim=-2)
        return [K_h, K_c], [[None, self.through * self.forget], [None, self.forget]]

    def bend(self, g: tuple[Tensor, ...], dv: Tensor, dc: Tensor) -> tuple[Tensor, Tensor]:
        """The change of Kᵀ g and of Lᵀ g (by c), g held, along dv and the dc of the step before."""
        by_v = self._memory.empty(self._values.shape, self._values)
        by_c = self._memory.empty(self._t.shape, self._t)
        given = (self._values, self.c, self._t, *g, dv, dc)
        _native.lstm_bend(*(_array(one) for one in given), by_v.numpy(), by_c.numpy())
        return by_v, by_c


def tanh_deltas(
    z: Tensor, weight_hh: Tensor, gamma: Tensor, last: Tensor, memory: Memory
) -> tuple[Tensor, Tensor]:
    """δ (T,B,H) and exponents of one tanh layer; γ enters at step `last` of each example."""
    steps, batch, hidden = z.shape
    delta = memory.empty(z.shape, z)
    exponents = torch.empty((steps, batch), dtype=torch.int32)
    arrays = (
        _checked("z", z, z, (steps, batch, hidden)),
        _checked("weight_hh", weight_hh, z, (hidden, hidden)),
        _checked("gamma", gamma, z, (batch, hidden)),
        last.to(torch.int64).contiguous(),
        delta,
        exponents,
    )
    _entry("tanh_deltas", z)(steps, batch, hidden, *map(_address, arrays))
    return delta, exponents


@dataclass(frozen=True)
class TanhRun:
    """One tanh layer that has gone forward and back: all that `tanh_change` reads of it."""

    u: Tensor
    z: Tensor
    initial: Tensor
    weight_hh: Tensor
    delta: Tensor  # (T,B,1,H)
    exponents: Tensor


def tanh_change(run: TanhRun, update: dict[str, Tensor], memory: Memory) -> Tensor:
    """(T,B,H): the full derivative of δ along an update of the weights, γ held."""
    z = run.z
    steps, batch, hidden = z.shape
    width = run.u.shape[2]
    biases = [update[name] for name in ("bias_ih", "bias_hh") if name in update]
    bias = torch.stack(biases).sum(0) if biases else None
    da, change = (memory.empty(z.shape, z) for _ in range(2))
    arrays = (
        _checked("u", run.u, z, (steps, batch, width)),
        _checked("z", z, z, (steps, batch, hidden)),
        _checked("initial", run.initial, z, (batch, hidden)),
        _checked("weight_hh", run.weight_hh, z, (hidden, hidden)),
        _checked("update of weight_ih", update["weight_ih"], z, (hidden, width)),
        _checked("update of weight_hh", update["weight_hh"], z, (hidden, hidden)),
        _checked("update of the bias", bias, z, (hidden,)),
        _checked("delta", run.delta, z, (steps, batch, 1, hidden)),
        run.exponents.to(torch.int32).contiguous(),
        da,
        change,
    )
    _entry("tanh_change", z)(steps, batch, width, hidden, *map(_address, arrays))
    return change


def _entry(name: str, like: Tensor) -> Any:
    return getattr(_native, name + ("32" if like.dtype == torch.float32 else "64"))


def _checked(
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


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().contiguous().numpy()
