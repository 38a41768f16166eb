"""What every unit of an LSTM does at every step, by the compiled kernel, on the CPU.

The same as autograd finds through `cells.LSTM`, which is the oracle of this; here it is one pass
over the units each, because for an LSTM those would cost more than the recursions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gradsieve.kernel import _native
from gradsieve.torch.memory import Memory


class LSTMUnits:
    """Gates, memory c(0) … c(T), and what an LSTM's Jacobians are made of.

    K holds ∂c/∂a for the gates write, keep and new and ∂h/∂a for show; `through` is ∂h/∂c, `keep`
    is ∂c/∂c(n−1).
    """

    def __init__(self, v: Tensor, initial: Tensor, memory: Memory) -> None:
        """From the products v = x + a, (T,B,4,H), and c(0), (B,H)."""
        steps, batch, _, hidden = v.shape
        gates, state = v.shape, (steps, batch, hidden)
        self._memory = memory
        self._values, self.K = memory.empty(gates, v), memory.empty(gates, v)
        self._t = memory.empty(state, v)
        self.through, self.keep = memory.empty(state, v), memory.empty(state, v)
        self.c = memory.empty((steps + 1, batch, hidden), v)
        _native.lstm_units(
            *_arrays(v, initial),
            *_arrays(self._values, self.c, self._t),
            *_arrays(self.K, self.through, self.keep),
        )

    def tables(self) -> tuple[list[Tensor], list[list[Tensor | None]]]:
        """K and L as `gradsieve.torch.local` has them for any cell; the kernel needs less."""
        K_c = torch.cat([self.K[..., :3, :], torch.zeros_like(self.K[..., 3:, :])], dim=-2)
        K_h = torch.cat([self.through.unsqueeze(-2) * K_c[..., :3, :], self.K[..., 3:, :]], dim=-2)
        return [K_h, K_c], [[None, self.through * self.keep], [None, self.keep]]

    def bend(self, g: tuple[Tensor, ...], dv: Tensor, dc: Tensor) -> tuple[Tensor, Tensor]:
        """The change of Kᵀ g and of Lᵀ g (by c), g held, along dv and the dc of the step before."""
        by_v = self._memory.empty(self._values.shape, self._values)
        by_c = self._memory.empty(self._t.shape, self._t)
        _native.lstm_bend(
            *_arrays(self._values, self.c, self._t),
            *_arrays(*g, dv, dc, by_v, by_c),
        )
        return by_v, by_c


def usable(like: Tensor) -> bool:
    return like.device.type == "cpu" and like.dtype in (torch.float32, torch.float64)


def _arrays(*tensors: Tensor) -> list[Any]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]
