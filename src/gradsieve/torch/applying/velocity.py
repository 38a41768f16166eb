"""Momentum: what becomes of it when a step is left out, and how a correction enters it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from gradsieve.sieve.settings import OnSkip
from gradsieve.torch.measures import length

BUFFER, FIRST_MOMENT, SECOND_MOMENT = "momentum_buffer", "exp_avg", "exp_avg_sq"


def leave_out(optimizer: Optimizer, on_skip: OnSkip) -> None:
    """Keep the velocity (momentum buffers, first moments), let it decay by one step, or zero it."""
    if on_skip == "keep":
        return
    for group in optimizer.param_groups:
        factor = 0.0 if on_skip == "reset" else _momentum(group)
        for parameter in group["params"]:
            for name in (BUFFER, FIRST_MOMENT):
                velocity = optimizer.state.get(parameter, {}).get(name)
                if isinstance(velocity, Tensor):
                    velocity.mul_(factor)


@torch.no_grad()
def carry_on(optimizer: Optimizer, corrections: dict[Tensor, Tensor]) -> None:
    """Let the optimizer's momentum hold corrections as it holds steps.

    In the core a correction is a part of the velocity, so the next update holds μ of it. Here it
    enters the buffer that the step was made from, in that buffer's units: SGD and RMSprop step by
    −rate · buffer, Adam by −rate · m̂ / (√v̂ + ε). A rate that falls takes it along.
    """
    for group in optimizer.param_groups:
        rate = float(group.get("lr", 0.0))
        for parameter in group["params"]:
            state = optimizer.state.get(parameter, {})
            if rate <= 0 or parameter not in corrections:
                continue
            if isinstance(state.get(BUFFER), Tensor):
                state[BUFFER].sub_(corrections[parameter] / rate)
            elif isinstance(state.get(FIRST_MOMENT), Tensor) and SECOND_MOMENT in state:
                scale = _adam_scale(state, group)
                state[FIRST_MOMENT].sub_(corrections[parameter] * scale / rate)


@torch.no_grad()
def fresh_length(optimizer: Optimizer, steps: dict[Tensor, Tensor]) -> float:
    """The length of the part of these steps that this gradient alone made.

    The rest is momentum, which holds earlier corrections too.
    """
    square = 0.0
    for group in optimizer.param_groups:
        rate = float(group.get("lr", 0.0))
        for parameter in group["params"]:
            if parameter in steps:
                state = optimizer.state.get(parameter, {})
                part, share = steps[parameter], 1.0
                if isinstance(state.get(BUFFER), Tensor):
                    part, share = parameter.grad, rate
                elif isinstance(state.get(FIRST_MOMENT), Tensor) and SECOND_MOMENT in state:
                    part = parameter.grad / _adam_scale(state, group)
                    share = rate * (1 - group["betas"][0])
                square += (share * length(part)) ** 2
    return math.sqrt(square)


def _adam_scale(state: dict[str, Any], group: dict[str, Any]) -> Tensor:
    """(√v̂ + ε) (1 − β₁ᵗ): a first moment of this size makes Adam's step −rate."""
    first, second = group["betas"]
    step = float(state["step"])
    v = state.get(f"max_{SECOND_MOMENT}", state[SECOND_MOMENT])
    scale: Tensor = ((v / (1 - second**step)).sqrt() + group["eps"]) * (1 - first**step)
    return scale


def _momentum(group: dict[str, Any]) -> float:
    """The share of a step that the next one holds; 0 for an optimizer without momentum."""
    return float(group.get("momentum", group.get("betas", (0.0,))[0]))
