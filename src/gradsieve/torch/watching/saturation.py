"""How many gates are at an end of their range, where their slope is next to nothing."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gradsieve.torch.evidence.forward import LayerRun
from gradsieve.torch.modules import cells

# Beyond it a squashing function is within 1 % of an end.
ENDS = {"tanh": math.atanh(0.99), "sigmoid": math.log(99.0)}


def saturated_share(run: LayerRun) -> dict[str, float]:
    """By gate: the share of its values within 1 % of an end (for relu: that are off)."""
    cell = run.cell
    if not cell.squash:
        return {}
    values = _pre_activations(run)
    return {
        gate: float(_beyond(values[..., index, :], squash).double().mean())
        for index, (gate, squash) in enumerate(zip(cell.gates, cell.squash, strict=True))
    }


def _beyond(values: Tensor, squash: str) -> Tensor:
    return values <= 0 if squash == "relu" else values.abs() > ENDS[squash]


def _pre_activations(run: LayerRun) -> Tensor:
    if run.cell is not cells.GRU:
        return run.x + run.a
    # The reset gate scales the recurrent product of the new state before it is added.
    reset = torch.sigmoid(run.x[..., :1, :] + run.a[..., :1, :])
    factor = torch.cat([torch.ones_like(reset), torch.ones_like(reset), reset], dim=-2)
    return run.x + factor * run.a
