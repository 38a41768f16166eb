"""The norm of the gradient against the lag, and how far it reaches."""

from __future__ import annotations

import math

import torch

from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.recursion import Deltas

LOG10_2 = math.log10(2)


def norms_by_lag(carrier: Carrier, deltas: Deltas) -> list[float]:
    """log10 of the mean of ‖δ(last−k)‖ for k = 0, 1, …, over the examples that are long enough."""
    squares = deltas.delta.flatten(2).double().square().sum(-1)
    longest = int(carrier.last.max())
    lags = torch.arange(longest + 1, device=squares.device).unsqueeze(1)
    step = carrier.last - lags
    inside = step >= 0
    step = step.clamp(min=0)
    norm = squares.gather(0, step).sqrt()
    exponent = deltas.exponents.long().gather(0, step)
    used = inside & (norm > 0)
    top = torch.where(used, exponent, -(2**40)).amax(1, keepdim=True)
    scaled = torch.where(used, torch.ldexp(norm, (exponent - top).clamp(-2000, 0)), 0.0)
    mean = scaled.sum(1) / inside.sum(1)
    logs = torch.log10(mean) + top.squeeze(1) * LOG10_2
    return [float(value) if some else -math.inf for value, some in zip(logs, mean > 0, strict=True)]


def reach(logs: list[float], q_range: tuple[float, float]) -> int:
    """The longest lag at which Q is inside the range; on the way there it may have been outside."""
    lowest, highest = q_range
    return max(
        (lag for lag, log in enumerate(logs) if lowest <= logs[0] - log <= highest), default=0
    )
