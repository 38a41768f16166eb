"""The norm of the gradient against the lag, and how far its slow part reaches."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.recursion import Deltas

LOG10_2 = math.log10(2)
COARSE = 6  # lags at which slow Q is measured at every look


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


def coarse_lags(longest: int) -> list[int]:
    """A few lags from 1 to the longest, each a multiple of the one before."""
    if longest < 1:
        return []
    return sorted({int(lag) for lag in np.geomspace(1, longest, COARSE).round()})


def reach(slow_Q: Callable[[int], float], longest: int, highest: float) -> int:
    """The longest lag at which slow Q is not above its range.

    Slow Q may leave the range on the way there and come back. So it is measured at a few lags, and
    halved between the last one inside and the next one.
    """
    if longest < 1:
        return 0
    inside, outside = 0, longest + 1
    for lag in reversed(coarse_lags(longest)):
        if slow_Q(lag) <= highest:
            inside = lag
            break
        outside = lag
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if slow_Q(middle) <= highest else (inside, middle)
    return inside
