"""Taking a step back: parameters and optimizer state exactly as they were, and their velocity."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

VELOCITIES = ("momentum_buffer", "exp_avg")
_IMMUTABLE = (bool, int, float, str, type(None))


class Snapshot:
    """Everything that `optimizer.step()` can change, bit for bit."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.parameters = moving_parameters(optimizer)
        with torch.no_grad():
            self.values = [parameter.detach().clone() for parameter in self.parameters]
        self._state = {
            key: {name: _saved(value) for name, value in entry.items()}
            for key, entry in optimizer.state.items()
        }
        self._groups = [
            {name: _saved(value) for name, value in group.items() if name != "params"}
            for group in optimizer.param_groups
        ]

    def restore(self) -> None:
        state = self._optimizer.state
        with torch.no_grad():
            for parameter, value in zip(self.parameters, self.values, strict=True):
                parameter.copy_(value)
            for key in [key for key in state if key not in self._state]:
                del state[key]
            for key, entry in self._state.items():
                state[key].clear()
                state[key].update({name: _restored(saved) for name, saved in entry.items()})
            for group, saved_group in zip(self._optimizer.param_groups, self._groups, strict=True):
                group.update({name: _restored(saved) for name, saved in saved_group.items()})


def moving_parameters(optimizer: Optimizer) -> list[Tensor]:
    """The parameters that a step can move: those with a gradient."""
    return [
        parameter
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]


def _saved(value: Any) -> tuple[Any, Any]:
    """The object itself and its contents: a restored tensor stays the same object."""
    if isinstance(value, Tensor):
        return value, value.detach().clone()
    return None, value if type(value) in _IMMUTABLE else copy.deepcopy(value)


def _restored(saved: tuple[Any, Any]) -> Any:
    original, contents = saved
    if original is None:
        return contents if type(contents) in _IMMUTABLE else copy.deepcopy(contents)
    original.copy_(contents)
    return original


def momentum_of(group: dict[str, Any]) -> float:
    """Which part of a step the next one holds; 0 for an optimizer without momentum."""
    return float(group.get("momentum", group.get("betas", (0.0,))[0]))


def scale_velocity(optimizer: Optimizer, reset: bool) -> None:
    """Set the velocity (first moments) to zero, or let it decay by one step's momentum."""
    for group in optimizer.param_groups:
        factor = 0.0 if reset else momentum_of(group)
        for parameter in group["params"]:
            for name in VELOCITIES:
                velocity = optimizer.state.get(parameter, {}).get(name)
                if isinstance(velocity, Tensor):
                    velocity.mul_(factor)
