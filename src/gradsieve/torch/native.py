"""The recursions of `gradsieve.torch.recursion` by the compiled kernel, where it can be used.

It can for unitwise cells on the CPU in float32 or float64. Everything else takes the loop in
Python, which says the same and is the oracle of this one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradsieve.kernel import _native
from gradsieve.torch.cells import State
from gradsieve.torch.local import Local, LSTMLocal, UnitwiseLocal

MOST_PARTS = 4


def usable(local: Local) -> bool:
    if not isinstance(local, UnitwiseLocal) or local.run.cell.states > MOST_PARTS:
        return False
    h = local.run.after[0]
    return h.device.type == "cpu" and h.dtype in (torch.float32, torch.float64)


def pull(
    local: UnitwiseLocal,
    weight_hh: Tensor,
    injected: list[Tensor | None],
    injected_exponents: Tensor | None,
    added_delta: Tensor | None,
    added_state: list[Tensor | None],
    exponents: Tensor | None,
    keep_g: bool,
) -> tuple[Tensor, State, Tensor]:
    """δ, g and their exponents; see `recursion.pull_back`. δ takes the place of `added_delta`."""
    memory, after = local.run.memory, local.run.after
    steps, batch, units = after[-1].shape
    if added_delta is None:
        delta = memory.empty((steps, batch, len(local.run.cell.gates), units), after[0])
    else:
        delta = added_delta = added_delta.contiguous()
    g = tuple(memory.empty(part.shape, part) for part in after) if keep_g else ()
    if exponents is None:
        chosen = torch.empty((steps, batch), dtype=torch.int32)
    else:
        chosen = exponents.contiguous()
    _native.pull(
        *_tables(local, weight_hh),
        [_array(part) for part in injected],
        None if injected_exponents is None else _array(injected_exponents.to(torch.int32)),
        _array(added_delta),
        [_array(part) for part in added_state],
        chosen.numpy(),
        exponents is None,
        delta.numpy(),
        [part.numpy() for part in g] if keep_g else [None] * len(after),
        _through(local),
    )
    return delta, g, chosen


def push(
    local: UnitwiseLocal, weight_hh: Tensor, explicit: Tensor, R: State | None
) -> tuple[Tensor, State]:
    """da and ds(1) … ds(T); see `recursion.push_forward`. da takes the place of `explicit`."""
    memory = local.run.memory
    ds = tuple(memory.empty(part.shape, part) for part in local.run.after)
    da = explicit.contiguous()
    _native.push(
        *_tables(local, weight_hh),
        da.numpy(),
        [None] * len(ds) if R is None else [_array(part) for part in R],
        da.numpy(),
        [part.numpy() for part in ds],
        _through(local),
    )
    return da, ds


def _through(local: UnitwiseLocal) -> Any:
    return _array(local.units.through) if isinstance(local, LSTMLocal) else None


def _tables(local: UnitwiseLocal, weight_hh: Tensor) -> tuple[list[Any], list[Any], Any]:
    if isinstance(local, LSTMLocal):
        return [_array(local.units.K)], [_array(local.units.keep)], _array(weight_hh)
    return (
        [_array(table) for table in local.K],
        [_array(table) for row in local.L for table in row],
        _array(weight_hh),
    )


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().contiguous().numpy()
