"""Weights in motion: the update μ v − α g, with g scaled by its mean square and then clipped.

The proposal is the whole change of the weights, momentum and clipping included, because the whole
change moves the far gradient.
"""

from __future__ import annotations

import math

import numpy as np

from gradsieve import kernel
from gradsieve.network import SRN, Array
from gradsieve.recipe import Optimiser
from gradsieve.recipe.optimiser import AUTO
from gradsieve.sieve.settings import OnSkip
from gradsieve.training.auto_clip import AutoClip
from gradsieve.training.mean_square import MeanSquare


class Descent:
    """The moving part of a run: weights, velocity, and the mean square of the gradients.

    `learning_rate` is that of the epoch. Gradients of updates that are left out still enter the
    mean square.
    """

    def __init__(self, net: SRN, optimiser: Optimiser) -> None:
        self.net = net
        self.optimiser = optimiser
        self.learning_rate = optimiser.learning_rate
        self.velocity = np.zeros_like(net.flat)
        self.applied: Array | None = None  # the last update that was made
        self.fresh = self.velocity  # the last proposal, without the velocity in it
        self.fresh_rate = 0.0  # in units of this
        self.auto_clip = AutoClip(optimiser.clip_quantile) if optimiser.clip == AUTO else None
        decay = optimiser.rms_decay
        self.mean_square = (
            None if decay is None else MeanSquare(net.flat.size, decay, optimiser.rms_bound)
        )

    def observe(self, gradient: Array) -> None:
        """Let a gradient enter the mean square and the history that AutoClip clips by."""
        if self.mean_square is not None:
            self.mean_square.observe(gradient)
        if self.auto_clip is not None:
            self.auto_clip.observe(kernel.norm(self._scaled(gradient)))

    def propose(self, gradient: Array) -> Array:
        """The update that this gradient leads to."""
        gradient = self._scaled(gradient)
        clip, norm = self.threshold, kernel.norm(gradient)
        factor = clip / norm if norm > clip else 1.0
        self.fresh, self.fresh_rate = gradient, self.learning_rate * factor
        return kernel.propose(self.optimiser.momentum, self.velocity, self.fresh_rate, gradient)

    @property
    def threshold(self) -> float:
        """The norm at which gradients are clipped."""
        if self.auto_clip is not None:
            return self.auto_clip.threshold
        clip = self.optimiser.clip
        return math.inf if clip is None or clip == AUTO else clip

    def _scaled(self, gradient: Array) -> Array:
        return gradient if self.mean_square is None else self.mean_square.scaled(gradient)

    def fresh_length(self, first: int) -> float:
        """‖α g‖ of the last proposal, over this many of the first weights.

        Unlike the proposal, which holds the velocity, it has nothing of earlier corrections in it.
        """
        return self.fresh_rate * kernel.norm(self.fresh[:first])

    def apply(self, proposal: Array) -> bool:
        """Move the weights; False, and nothing moved, where that would leave them not finite."""
        if not kernel.move(self.net.flat, proposal):
            return False
        self.velocity = self.applied = proposal
        return True

    def leave_out(self, on_skip: OnSkip) -> None:
        """Keep, decay or reset the velocity, since an update is left out."""
        if on_skip == "reset":
            self.velocity = np.zeros_like(self.velocity)
        elif on_skip == "decay":
            self.velocity = self.optimiser.momentum * self.velocity
