"""Going back, where a few steps have undone what a run had learned.

A network that has learned can be thrown back to a guess by a row of exploded updates, and it seldom
finds again what it had (docs/theory.md). So a run can remember how it was when its loss was lowest,
and return there at half the rate once its loss is many times as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from gradsieve.network import Array
from gradsieve.training.step import Stepper


@dataclass(frozen=True)
class Refuge:
    """A run as it was when its loss was lowest over sequences of one length."""

    weights: Array
    mean_square: Array | None  # of the gradients, and how many, where these are scaled by it
    seen: int = 0
    loss: float = math.inf
    stage: int | None = None  # the length, None the task's own
    share: float = 1.0  # of the rate that is left after going back

    @classmethod
    def of(cls, stepper: Stepper, loss: float, stage: int | None, share: float) -> Refuge:
        scaling = stepper.scaling
        return cls(
            weights=stepper.net.flat.copy(),
            mean_square=None if scaling is None else scaling.mean_square.copy(),
            seen=0 if scaling is None else scaling.seen,
            loss=loss,
            stage=stage,
            share=share,
        )

    def restore(self, stepper: Stepper) -> None:
        """Let a run be as it was here, at rest."""
        stepper.net.flat[:] = self.weights
        stepper.velocity = np.zeros_like(stepper.velocity)
        if stepper.scaling is not None and self.mean_square is not None:
            stepper.scaling.mean_square[:] = self.mean_square
            stepper.scaling.seen = self.seen


class Retreat:
    """Remembers the refuge of a run, and takes the run back to it."""

    def __init__(self, times: float, stepper: Stepper, stage: int | None) -> None:
        self.times = times
        self.refuge = Refuge.of(stepper, math.inf, stage, share=1.0)

    def share_in(self, stage: int | None) -> float:
        """Which share of the rate a stage has left: all of it, until it was gone back in it."""
        return self.refuge.share if stage == self.refuge.stage else 1.0

    def look(self, stepper: Stepper, losses: Sequence[float], stage: int | None) -> bool:
        """Remember the run if its loss is the lowest, take it back if it is lost: whether it was.

        The loss is the median of the minibatches', which a few sequences that go astray leave as it
        is. A minibatch without one was not looked at.
        """
        loss = median([loss for loss in losses if not math.isnan(loss)] or [math.inf])
        share = self.share_in(stage)
        if stage != self.refuge.stage or loss <= self.refuge.loss:
            self.refuge = Refuge.of(stepper, loss, stage, share)
            return False
        if loss <= self.times * self.refuge.loss:
            return False
        self.refuge.restore(stepper)
        self.refuge = replace(self.refuge, share=share / 2)
        return True
