"""Momentum: what becomes of it when a step is left out, and how a correction enters it."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from gradsieve.sieve.settings import OnSkip

BUFFER, FIRST_MOMENT = "momentum_buffer", "exp_avg"


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


def carry_on(optimizer: Optimizer, corrections: dict[Tensor, Tensor]) -> None:
    """Let the momentum buffers of SGD and RMSprop hold corrections as they hold steps.

    Their update is −rate · buffer, so a correction c is −c/rate in the buffer, as in the velocity
    of the core. A rate that falls takes it along. Adam's moments hold gradients only.
    """
    for group in optimizer.param_groups:
        rate = float(group.get("lr", 0.0))
        for parameter in group["params"]:
            buffer = optimizer.state.get(parameter, {}).get(BUFFER)
            if rate > 0 and parameter in corrections and isinstance(buffer, Tensor):
                buffer.sub_(corrections[parameter] / rate)


def _momentum(group: dict[str, Any]) -> float:
    """The share of a step that the next one holds; 0 for an optimizer without momentum."""
    return float(group.get("momentum", group.get("betas", (0.0,))[0]))
