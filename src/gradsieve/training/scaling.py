"""RMSprop's scaling: each weight's gradient over the root of its own running mean square.

Where a far gradient is alive, it is also steep: nearly all of it lies along the few directions that
move the slow mode, the biases first of all, and a clipped step is spent on them. Scaled, the step
goes the same length in a direction in which every weight has its part (docs/theory.md).

An exploded gradient, 10⁵ times the usual one, would fill the mean square for thousands of updates,
and its own direction would decide how all of them are scaled. With a bound it counts as one that
is so many times as long as usual.
"""

from __future__ import annotations

import math

import numpy as np

from gradsieve import kernel
from gradsieve.network import Array

EPSILON = 1e-12  # below this, a gradient is no signal to be scaled up


class Scaling:
    """The running mean square of the gradients seen so far, and what it makes of the next one."""

    def __init__(self, size: int, decay: float, bound: float | None = None) -> None:
        self.decay = decay
        self.bound = bound
        self.mean_square = np.zeros(size)
        self.seen = 0

    def observe(self, gradient: Array) -> None:
        kernel.observe(self.decay, self._bounded(gradient), self.mean_square)
        self.seen += 1

    def __call__(self, gradient: Array) -> Array:
        """g / √(mean g²), the mean without the zero that it began from."""
        return kernel.scaled(gradient, self.mean_square, self._weight(), EPSILON)

    def _bounded(self, gradient: Array) -> Array:
        """The gradient, or what is left of it at `bound` times the root of the mean of ‖g‖²."""
        if self.bound is None or self.seen == 0:
            return gradient
        usual = math.sqrt(float(self.mean_square.sum()) / self._weight())
        if usual == 0:  # nothing but zeros so far
            return gradient
        longest, norm = self.bound * usual, kernel.norm(gradient)
        return gradient if norm <= longest else gradient * (longest / norm)

    def _weight(self) -> float:
        """How much of a mean the running one is, which began from zero."""
        return 1 - self.decay**self.seen
