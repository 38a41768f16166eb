"""Which way of finding a layer's derivatives suits it."""

from __future__ import annotations

from gradsieve.torch import lstm_local
from gradsieve.torch.forward import LayerRun
from gradsieve.torch.local import Local, MixingLocal, UnitwiseLocal


def linearise(run: LayerRun) -> Local:
    """The derivatives of one layer's `update` at every step."""
    if lstm_local.fits(run):
        return lstm_local.LSTMLocal(run)
    return UnitwiseLocal(run) if run.cell.unitwise else MixingLocal(run)
