"""The smallest correction that turns Q back, added to a step that the optimizer has taken.

What is needed is known before the step, the slope ∂Q/∂w and the weights; what is lacking only after
it. Changes the parameters of one recurrent module in place, and what is carried on from the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsieve.sieve import Verdict
from gradsieve.torch.carried import Carried
from gradsieve.torch.stack import Stack
from gradsieve.training.step import LEADS_BACK, STEERED


@dataclass(frozen=True)
class Correction:
    """Of one module whose Q is out of its range, to be applied after the step."""

    stack: Stack
    wanted: int  # the sign that leads back, +1 where the gradient has vanished
    Q: float
    slope: list[Tensor]  # ∂Q/∂(parameter)
    before: list[Tensor]  # the parameters before the step

    def apply(self, steer_rate: float, carried: Carried) -> tuple[Verdict, bool]:
        """Correct what the step lacks of the steer rate; the verdict, and whether it lacked any."""
        parameters = self.stack.parameters()
        moved = sum(
            float((g.double() * (p.detach() - old)).sum())
            for g, p, old in zip(self.slope, parameters, self.before, strict=True)
        )
        square = sum(float(g.double().square().sum()) for g in self.slope)
        # dQ·ln 10 is the change of ln‖δ(T)‖ − ln‖δ(T−h)‖, so what leads back is −wanted.
        predicted = -math.log(10) * moved
        lack = steer_rate - self.wanted * predicted
        if not (math.isfinite(lack) and math.isfinite(square) and square > 0):
            return Verdict(True, STEERED[self.wanted] + ": no way found", self.Q), False
        if lack <= 0:
            return Verdict(True, LEADS_BACK[self.wanted], self.Q, math.nan, predicted), False
        factor = -self.wanted * lack / (math.log(10) * square)
        with torch.no_grad():
            for parameter, g in zip(parameters, self.slope, strict=True):
                correction = g.to(parameter) * factor
                parameter.add_(correction)
                carried.add(parameter, correction)
        change = self.wanted * steer_rate
        return Verdict(True, STEERED[self.wanted], self.Q, math.nan, change), True
