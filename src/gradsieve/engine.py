"""The interface of an engine: the arithmetic of one minibatch, forward and back through time.

An engine is a subclass of `Flow`: `reference` (NumPy, float64, a page of code: the oracle) or
`kernel` (compiled). `gradsieve.flow` chooses one and checks its arguments.

Shapes, here and everywhere: T time steps, B sequences in the minibatch, I inputs, H hidden units,
O outputs; time first. Sequences of unequal length are aligned at their *end*: all of them end at
step T, and sequence i begins after step `starts[i]`. Before that its state is zero and no gradient
flows, exactly, so that delta(T-h) is h steps before the end for each of them.

Deltas can fall far below the smallest float, so a flow keeps delta(n) = scaled_deltas[n-1] *
2**exponents[n-1].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import numpy as np

from gradsieve.network import SRN, Array, Weights

Engine = Literal["native", "reference"]
Derivative = Literal["full", "frozen"]
Measure = Literal["S", "Q"]


class Norms(NamedTuple):
    """The near delta(T), the far delta(T-h) and their change, summed over the minibatch.

    Near values are in units of 2**near_exponent and far ones of 2**far_exponent (`far_square` and
    `far_product` of its square), so that none of them underflows.
    """

    near_norm: float  # sum of |delta(T)|
    near_slope: float  # its change: sum of <delta, ddelta> / |delta| at T
    far_norm: float  # sum of |delta(T-h)|
    far_slope: float  # its change
    far_square: float  # sum of |delta(T-h)|^2
    far_product: float  # sum of <delta(T-h), ddelta(T-h)>
    near_exponent: int
    far_exponent: int


class Flow(ABC):
    """One minibatch gone forward and backward through a network."""

    engine: Engine
    net: SRN  # as it was: a flow keeps its own copy of the weights
    u: Array  # (T,B,I)
    t: Array  # (B,) or (T,B) int classes, (B,O) or (T,B,O) float
    starts: Array | None  # (B,) int
    loss: float  # summed over the minibatch, and over the steps where targets are per step
    outputs: Array  # (B,O) or (T,B,O): class probabilities, or values
    states: Array  # (T+1,B,H), states[n] is z(n)
    slopes: Array  # (T,B,H), slopes[n-1] is D(n) = f'(a(n)), exact also where z(n) rounds to 1
    scaled_deltas: Array  # (T,B,H)
    exponents: Array  # (T,) int
    gradient: Weights

    @abstractmethod
    def __init__(
        self, net: SRN, u: Array, t: Array, starts: Array | None, reuse: Flow | None = None
    ) -> None:
        """Go forward and backward; see `gradsieve.flow.propagate`."""

    @property
    def length(self) -> int:
        return int(self.u.shape[0])

    @property
    def per_step(self) -> bool:
        """Whether there is a target at every step rather than at the last one."""
        return self.t.ndim == (2 if self.net.output == "softmax" else 3)

    @property
    def deltas(self) -> Array:
        """(T,B,H), deltas[n-1] is delta(n) = dE/da(n), in float64."""
        return np.ldexp(self.scaled_deltas.astype(np.float64), self.exponents[:, None, None])

    def of_last_step(self) -> Flow:
        """The flow whose far gradient counts: that of the loss at the last step alone.

        With a target at every step each delta(n) holds that step's own error too, which says
        nothing of how far back the network learns.
        """
        if not self.per_step:
            return self
        return type(self)(self.net, self.u, self.t[-1], self.starts)

    @abstractmethod
    def norms(self, update: Weights | None, horizon: int, estimator: Derivative) -> Norms:
        """Near and far norms and, where an update is given, their change along it.

        This and `norm_gradient` are for a flow with its targets at the last step.
        """

    @abstractmethod
    def norm_gradient(self, horizon: int, of: Measure, estimator: Derivative) -> Weights:
        """Derivative of Q, or of S in units of 4**exponents[T-h-1], by every weight."""

    @abstractmethod
    def slow_factor(self, horizon: int, steps: int) -> float:
        """Q of the slow gradient (see `gradsieve.change.slow_factor`), over a window of steps."""

    @abstractmethod
    def slow_gradient(self, horizon: int, steps: int) -> Weights:
        """Its derivative by every weight."""

    @abstractmethod
    def example_products(self, direction: Weights) -> Array:
        """(B,): <direction, g_i> for the gradient g_i of each example alone, in float64."""
