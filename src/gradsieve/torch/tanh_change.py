"""The deltas of one tanh layer and what an update does to them, a call of the kernel each.

The same as `Transport` finds for any stack; a single tanh layer is short enough that intermediate
arrays would cost more than the arithmetic.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsieve.kernel import _native
from gradsieve.torch import native
from gradsieve.torch.forward import LayerRun
from gradsieve.torch.local import Local, TanhLocal
from gradsieve.torch.recursion import Deltas
from gradsieve.torch.stack import LayerWeights
from gradsieve.torch.tanh_layer import address, checked

_DELTAS = {torch.float32: _native.tanh_deltas32, torch.float64: _native.tanh_deltas64}
_CHANGE = {torch.float32: _native.tanh_change32, torch.float64: _native.tanh_change64}


def usable(local: Local) -> bool:
    return isinstance(local, TanhLocal) and native.usable(local)


def deltas(run: LayerRun, gamma: Tensor, last: Tensor) -> Deltas:
    """δ that γ, which enters at step `last` of each example, has at every step; without g."""
    z = run.after[0]
    steps, batch, hidden = z.shape
    delta = run.memory.empty(z.shape, z)
    exponents = torch.empty((steps, batch), dtype=torch.int32)
    arrays = (
        checked("z", z, z, (steps, batch, hidden)),
        checked("weight_hh", run.weights["weight_hh"], z, (hidden, hidden)),
        checked("gamma", gamma, z, (batch, hidden)),
        last.to(torch.int64).contiguous(),
        delta,
        exponents,
    )
    _DELTAS[z.dtype](steps, batch, hidden, *map(address, arrays))
    return Deltas(delta.unsqueeze(-2), (), exponents)


def full_change(run: LayerRun, known: Deltas, update: LayerWeights) -> Deltas:
    """The full derivative of the deltas along an update of the weights, γ held."""
    z = run.after[0]
    steps, batch, hidden = z.shape
    width = run.u.shape[2]
    da, change = (run.memory.empty(z.shape, z) for _ in range(2))
    exponents = known.exponents.to(torch.int32).contiguous()
    arrays = (
        checked("u", run.u, z, (steps, batch, width)),
        checked("z", z, z, (steps, batch, hidden)),
        checked("initial", run.before[0][0], z, (batch, hidden)),
        checked("weight_hh", run.weights["weight_hh"], z, (hidden, hidden)),
        checked("update of weight_ih", update["weight_ih"], z, (hidden, width)),
        checked("update of weight_hh", update["weight_hh"], z, (hidden, hidden)),
        checked("update of the bias", _bias(update), z, (hidden,)),
        checked("delta", known.delta, z, (steps, batch, 1, hidden)),
        exponents,
        da,
        change,
    )
    _CHANGE[z.dtype](steps, batch, width, hidden, *map(address, arrays))
    return Deltas(change.unsqueeze(-2), (), known.exponents)


def _bias(update: LayerWeights) -> Tensor | None:
    given = [update[name] for name in ("bias_ih", "bias_hh") if name in update]
    return given[0] + given[1] if len(given) == 2 else given[0] if given else None
