"""A call of one of our own layers, whose passes leave behind what judging it needs.

The layer has its states and gates from its forward pass, and its backward pass goes the way that a
judge would go again. So it is asked to write its deltas, in units that hold them however small they
are, into a linearised layer of the kernel's, where everything else is computed from them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from gradsieve.kernel import recursions
from gradsieve.torch.fast.layer import Passes
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.cells import LINEAR

KINDS = {torch.float32: recursions.Linearised32, torch.float64: recursions.Linearised64}


class Followed:
    """What one call left behind: a `fast.layer.Follower`."""

    def __init__(self, memory: Memory) -> None:
        self.passes: Passes | None = None
        self.native: Any = None
        self.alone = False  # whether its deltas are those of one step's gradient of each sequence
        self._memory = memory
        self._versions: list[int] = []

    def follow(self, passes: Passes) -> Any:
        """Where the kernel shall write; the deltas of a second way back are not those of a sum."""
        if self.native is not None:
            self.passes, self.alone = None, False
            return None
        steps, batch, inputs = passes.u.shape
        key = (passes.cell, steps, batch, inputs, passes.h.shape[2], passes.h.dtype)
        self.native = self._memory.take(key, lambda: KINDS[passes.h.dtype](*key[:-1]))
        self.passes = passes
        self._versions = [one._version for one in passes.weights]
        return self.native

    def followed(self, alone: bool) -> None:
        self.alone = alone

    def stands(self, module: nn.Module) -> bool:
        """Whether its weights are still the module's parameters, and unchanged."""
        if self.passes is None:
            return False
        own = [module._parameters.get(f"{name}_l0") for name in LINEAR]
        weights = self.passes.weights
        return all(one is mine for one, mine in zip(weights, own, strict=False)) and (
            self._versions == [one._version for one in weights]
        )
