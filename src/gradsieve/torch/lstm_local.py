"""The derivatives of an LSTM's units by the compiled kernel, on the CPU.

The same as `UnitwiseLocal` finds by autograd, which is this one's oracle; here it is one pass over
the units each, because for an LSTM those passes would cost more than the recursions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gradsieve.kernel import _native
from gradsieve.torch import cells
from gradsieve.torch.cells import State, Weights
from gradsieve.torch.forward import LayerRun
from gradsieve.torch.local import Pulled, UnitwiseLocal


class LSTMLocal(UnitwiseLocal):
    """`UnitwiseLocal` of `cells.LSTM`, without autograd."""

    def _make_tables(self) -> None:
        run = self.run
        v = (run.x + run.a).contiguous()
        steps, batch, _, hidden = v.shape
        gates, state = v.shape, (steps, batch, hidden)
        self._values, self._slopes, K_h, K_c = (v.new_empty(gates) for _ in range(4))
        self._t, self._t_slope, L_hc, L_cc = (v.new_empty(state) for _ in range(4))
        self._c = v.new_empty((steps + 1, batch, hidden))
        arrays = (
            v, run.before[1][0].contiguous(), self._values, self._slopes, self._c,
            self._t, self._t_slope, K_h, K_c, L_hc, L_cc,
        )  # fmt: skip
        _native.lstm_units(*(array.numpy() for array in arrays))
        self.K = [K_h, K_c]
        self.L = [[None, L_hc], [None, L_cc]]

    def bend(self, g: State, x: Tensor, a: Tensor, state: State, extra: Weights) -> Pulled:
        by_v, by_c = torch.empty_like(self._values), torch.empty_like(self._t)
        arrays = (
            self._values, self._slopes, self._c, self._t, self._t_slope,
            g[0], g[1], x + a, state[1], by_v, by_c,
        )  # fmt: skip
        _native.lstm_bend(*(array.contiguous().numpy() for array in arrays))
        return Pulled(by_v, by_v, (torch.zeros_like(by_c), by_c))


def fits(run: LayerRun) -> bool:
    known = run.x.dtype in (torch.float32, torch.float64)
    return run.cell is cells.LSTM and run.x.device.type == "cpu" and known
