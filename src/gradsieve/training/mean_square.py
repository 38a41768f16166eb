"""RMSprop's scaling: each weight's gradient over the root of its own running mean square.

A far gradient that is alive is also steep: nearly all of it lies along the few directions that
move the slow mode, the biases first of all, and a clipped step is spent on them. Scaled, the step
has the same length in a direction in which every weight has its part (docs/theory.md).

One exploded gradient, 10⁵ times the usual norm, would fill the mean square for thousands of
updates. `bound` caps its norm at that many times the running average before it enters.
"""

from __future__ import annotations

import math

import numpy as np

from gradsieve import kernel
from gradsieve.network import Array

EPSILON = 1e-12  # below this, a gradient is no signal to be scaled up


class MeanSquare:
    """The running mean square of the gradients seen so far."""

    def __init__(self, size: int, decay: float, bound: float | None = None) -> None:
        self.decay = decay
        self.bound = bound
        self.values = np.zeros(size)
        self.seen = 0

    def observe(self, gradient: Array) -> None:
        """Let a gradient enter, capped."""
        kernel.observe(self.decay, self._capped(gradient), self.values)
        self.seen += 1

    def scaled(self, gradient: Array) -> Array:
        """g / √(mean g²), the mean without the zero that it began from."""
        return kernel.scaled(gradient, self.values, self._weight(), EPSILON)

    def _capped(self, gradient: Array) -> Array:
        if self.bound is None or self.seen == 0:
            return gradient
        usual = math.sqrt(float(self.values.sum()) / self._weight())
        if usual == 0:  # nothing but zeros so far
            return gradient
        longest, norm = self.bound * usual, kernel.norm(gradient)
        return gradient if norm <= longest else gradient * (longest / norm)

    def _weight(self) -> float:
        """How much of a mean the running one is, which began from zero."""
        return 1 - self.decay**self.seen
