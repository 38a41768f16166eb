"""The masks that a call of a stacked module dropped units with, between its layers.

PyTorch draws them inside the module. They are drawn again from the state that the generator had
before the call, in the same order and shapes. Where that gives other masks (cuDNN has a generator
of its own), the outputs that follow from them are not the recorded ones, and the call is not
judged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class DropoutDraw:
    """From where the masks of one call were drawn."""

    share: float  # of the units that are dropped
    state: Tensor  # of the generator before the call
    device: torch.device

    def masks(self, levels: int, shape: torch.Size, like: Tensor) -> list[Tensor]:
        """The factors of the outputs of each level but the top one."""
        devices = [] if self.device.type == "cpu" else [self.device]
        with torch.random.fork_rng(devices, device_type=_kind(self.device)):
            _generators(self.device).set_rng_state(self.state, *_index(self.device))
            ones = torch.ones(shape, dtype=like.dtype, device=like.device)
            return [nn.functional.dropout(ones, self.share) for _ in range(levels)]


def about_to_draw(module: nn.Module) -> DropoutDraw | None:
    """The generator as it is, if this call of the module will draw masks."""
    share = float(getattr(module, "dropout", 0.0) or 0.0)
    if not (module.training and isinstance(module, nn.RNNBase) and share > 0):
        return None
    if module.num_layers < 2:
        return None
    device = next(module.parameters()).device
    state = _generators(device).get_rng_state(*_index(device))
    return DropoutDraw(share, state, device)


def _generators(device: torch.device) -> Any:
    """The module of PyTorch that holds the state of a device's generator."""
    return torch if device.type == "cpu" else getattr(torch, device.type)


def _index(device: torch.device) -> tuple[torch.device, ...]:
    return () if device.type == "cpu" else (device,)


def _kind(device: torch.device) -> str:
    return "cuda" if device.type == "cpu" else device.type
