"""Taking a step back: parameters and optimizer state exactly as they were."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from gradsieve.torch.applying.clipping import values_of
from gradsieve.torch.measures import all_finite

_IMMUTABLE = (bool, int, float, str, type(None))


class Snapshot:
    """Everything that `optimizer.step()` can change, bit for bit."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self._values = {one: one.detach().clone() for one in moving_parameters(optimizer)}
        self._state = {
            key: {name: _saved(value) for name, value in entry.items()}
            for key, entry in optimizer.state.items()
        }
        self._groups = [
            {name: _saved(value) for name, value in group.items() if name != "params"}
            for group in optimizer.param_groups
        ]

    def before(self, parameter: Tensor) -> Tensor:
        """The value of a parameter when the snapshot was taken."""
        return self._values.get(parameter, parameter.detach())

    def restore(self) -> None:
        state = self.optimizer.state
        with torch.no_grad():
            for parameter, value in self._values.items():
                parameter.copy_(value)
            for key in [key for key in state if key not in self._state]:
                del state[key]
            for key, entry in self._state.items():
                state[key].clear()
                state[key].update({name: _restored(saved) for name, saved in entry.items()})
            for group, saved_group in zip(self.optimizer.param_groups, self._groups, strict=True):
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


def finite_gradients(optimizer: Optimizer) -> bool:
    """Whether a step by these gradients may be made at all."""
    gradients = [values_of(p.grad) for p in moving_parameters(optimizer) if p.grad is not None]
    return not gradients or all_finite(gradients)
