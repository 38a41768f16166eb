"""Corrections have the momentum of the steps that they correct.

A step with momentum holds what is left of all earlier ones, and takes from the far gradient what
they took. A correction that were made once and forgotten would have to be made again at each step;
in gradsieve's own training it is a part of the velocity and goes on with it. Here it goes on beside
the optimizer, whose state has another form in each one: with SGD (not Nesterov's) it is exactly as
if it had been in the velocity, with Adam the same but for the scaling.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim import Optimizer

from gradsieve.torch.rollback import momentum_of


class Carried:
    """What is left of earlier corrections, by parameter."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.left: dict[Tensor, Tensor] = {}

    def add(self, parameter: Tensor, correction: Tensor) -> None:
        known = self.left.get(parameter)
        self.left[parameter] = correction if known is None else known + correction

    @torch.no_grad()
    def move(self) -> None:
        """Add to each parameter that the optimizer has just moved what it is still to get."""
        self.decay()
        for parameter, left in self.left.items():
            if parameter.grad is not None:
                parameter.add_(left)

    def decay(self) -> None:
        """Let all of it decay by one step's momentum."""
        if not self.left:
            return
        momentum = {
            parameter: momentum_of(group)
            for group in self._optimizer.param_groups
            for parameter in group["params"]
        }
        self.left = {
            parameter: left * factor
            for parameter, left in self.left.items()
            if (factor := momentum.get(parameter, 0.0))
        }

    def reset(self) -> None:
        self.left = {}

    def saved(self, parameters: list[Tensor]) -> dict[int, Tensor]:
        """For a checkpoint, by the parameter's place in this list."""
        return {
            place: self.left[parameter].clone()
            for place, parameter in enumerate(parameters)
            if parameter in self.left
        }

    def load(self, saved: dict[int, Tensor], parameters: list[Tensor]) -> None:
        self.left = {
            parameters[place]: left.to(parameters[place]).clone() for place, left in saved.items()
        }
