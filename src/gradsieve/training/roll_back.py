"""Roll-back: returning to the weights of the lowest loss, where a few steps have undone them.

A row of exploded updates can throw a network that has learned back to a guess, and it seldom finds
its solution again (docs/theory.md). A run can remember its weights at the lowest loss, and return
to them at half the rate once its loss is many times as large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from gradsieve.network import Array
from gradsieve.training.descent import Descent


@dataclass(frozen=True)
class Refuge:
    """A run as it was when its loss was lowest over sequences of one length."""

    weights: Array
    mean_square: Array | None  # of the gradients, and their number, where these are scaled by it
    seen: int = 0
    loss: float = math.inf
    stage: int | None = None  # the length of the sequences, None the task's own
    share: float = 1.0  # of the learning rate that is left after rolling back

    @classmethod
    def of(cls, descent: Descent, loss: float, stage: int | None, share: float) -> Refuge:
        square = descent.mean_square
        return cls(
            weights=descent.net.flat.copy(),
            mean_square=None if square is None else square.values.copy(),
            seen=0 if square is None else square.seen,
            loss=loss,
            stage=stage,
            share=share,
        )

    def restore(self, descent: Descent) -> None:
        """Give a run these weights, at rest."""
        descent.net.flat[:] = self.weights
        descent.velocity = np.zeros_like(descent.velocity)
        if descent.mean_square is not None and self.mean_square is not None:
            descent.mean_square.values[:] = self.mean_square
            descent.mean_square.seen = self.seen


class RollBack:
    """Remembers the refuge of a run, and takes the run back to it."""

    def __init__(self, times: float, descent: Descent, stage: int | None) -> None:
        self.times = times
        self.refuge = Refuge.of(descent, math.inf, stage, share=1.0)

    def share_in(self, stage: int | None) -> float:
        """The share of the rate that a stage has left: 1 until the run was rolled back in it."""
        return self.refuge.share if stage == self.refuge.stage else 1.0

    def look(self, descent: Descent, losses: Sequence[float], stage: int | None) -> bool:
        """Remember the run at its lowest loss, or take it back: whether it was taken back.

        The loss is the median over the minibatches, which a few exploded sequences leave as it is.
        A minibatch that was left out unseen has no loss.
        """
        loss = median([loss for loss in losses if not math.isnan(loss)] or [math.inf])
        share = self.share_in(stage)
        if stage != self.refuge.stage or loss <= self.refuge.loss:
            self.refuge = Refuge.of(descent, loss, stage, share)
            return False
        if loss <= self.times * self.refuge.loss:
            return False
        self.refuge.restore(descent)
        self.refuge = replace(self.refuge, share=share / 2)
        return True
