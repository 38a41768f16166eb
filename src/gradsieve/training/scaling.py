"""RMSprop's scaling: each weight's gradient over the root of its own running mean square.

Where a far gradient is alive, it is also steep: nearly all of it lies along the few directions that
move the slow mode, the biases first of all, and a clipped step is spent on them. Scaled, the step
goes the same length in a direction in which every weight has its part (docs/theory.md).
"""

from __future__ import annotations

import numpy as np

from gradsieve import kernel
from gradsieve.network import Array

EPSILON = 1e-12  # below this, a gradient is no signal to be scaled up


class Scaling:
    """The running mean square of the gradients seen so far, and what it makes of the next one."""

    def __init__(self, size: int, decay: float) -> None:
        self.decay = decay
        self.mean_square = np.zeros(size)
        self.seen = 0

    def observe(self, gradient: Array) -> None:
        kernel.observe(self.decay, gradient, self.mean_square)
        self.seen += 1

    def __call__(self, gradient: Array) -> Array:
        """g / √(mean g²), the mean without the zero that it began from."""
        weight = 1 - self.decay**self.seen
        return kernel.scaled(gradient, self.mean_square, weight, EPSILON)
