"""The loss of the best constant guess, from which a model that has learned nothing is told."""

from __future__ import annotations

import torch
from torch import Tensor

from gradsieve.errors import InvalidArgument


def constant_loss(targets: Tensor) -> float:
    """The mean loss of the best constant guess: cross-entropy or, of values, squared error."""
    if targets.numel() == 0:
        raise InvalidArgument("targets is empty; it must hold at least one target")
    if targets.is_floating_point():
        rows = targets.reshape(targets.shape[0], -1).double()
        return float(rows.var(0, unbiased=False).mean())
    counts = torch.bincount(targets.reshape(-1)).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())
