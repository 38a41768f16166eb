"""Forward and backward through time: one minibatch, all of its states, deltas and gradient.

`backpropagate` checks its arguments once, for every engine, and returns a `Flow`. An engine is a
subclass of `Flow` that does the arithmetic: `reference` (NumPy, float64, a page of code: the
oracle) or `native` (the compiled kernel). `gradsieve.change` asks a flow what an update would do
to its far gradient.

Shapes, here and everywhere: T time steps, B sequences in the minibatch, I inputs, H hidden units,
O outputs; time first. Sequences of unequal length are aligned at their *end*: all of them end at
step T, and sequence i begins after step `starts[i]`. Before that its state is zero and no gradient
flows, exactly, so that delta(T-h) is h steps before the end for each of them.

Deltas can fall far below what a float holds, so a flow keeps delta(n) = scaled_deltas[n-1] *
2**exponents[n-1].
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gradsieve.errors import InvalidArgument
from gradsieve.network import SRN, Array, Weights

Engine = Literal["native", "reference"]
Derivative = Literal["full", "frozen"]
Measure = Literal["S", "Q"]


class Norms(NamedTuple):
    """What one update does to the near delta(T) and the far delta(T-h), summed over the minibatch.

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
        return propagate(self.net, self.u, self.t[-1], self.starts, self.engine)

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


def backpropagate(
    net: SRN,
    u: ArrayLike,
    t: ArrayLike,
    engine: Engine = "native",
    starts: ArrayLike | None = None,
    reuse: Flow | None = None,
) -> Flow:
    """Run a minibatch forward and backward through a network.

    Args:
        net: the network; its dtype is the one that the native engine computes in.
        u: inputs, (T,B,I).
        t: targets. At the last step: (B,) classes or (B,O) values. At every step: (T,B) classes or
            (T,B,O) values.
        engine: "native" (compiled) or "reference" (NumPy, float64).
        starts: for sequences of unequal length, aligned at their end: how many leading steps of
            each are not part of it.
        reuse: a flow of the same sizes and engine whose memory may be overwritten; that older flow
            must not be used any more.
    """
    return propagate(net, *checked_batch(net, u, t, starts), engine=engine, reuse=reuse)


def propagate(
    net: SRN,
    u: Array,
    t: Array,
    starts: Array | None,
    engine: Engine = "native",
    reuse: Flow | None = None,
) -> Flow:
    """`backpropagate` on arrays that `checked_batch` has passed: the training loop's way in."""
    if engine == "reference":
        from gradsieve.reference import ReferenceFlow

        return ReferenceFlow(net, u, t, starts)
    if engine == "native":
        from gradsieve.kernel import NativeFlow

        return NativeFlow(net, u, t, starts, reuse)
    raise InvalidArgument(f"engine is {engine!r}; it may be 'native' or 'reference'")


def predict(
    net: SRN,
    u: ArrayLike,
    engine: Engine = "native",
    starts: ArrayLike | None = None,
    per_step: bool = False,
) -> Array:
    """Outputs (B,O) at the last step, or (T,B,O) at every step: probabilities or values."""
    u = checked_inputs(net, u)
    starts = checked_starts(u, starts)
    if engine == "reference":
        from gradsieve.reference import predict as reference_predict

        return reference_predict(net, u, starts, per_step)
    if engine == "native":
        from gradsieve.kernel import predict as native_predict

        return native_predict(net, u, starts, per_step)
    raise InvalidArgument(f"engine is {engine!r}; it may be 'native' or 'reference'")


def checked_batch(
    net: SRN, u: ArrayLike, t: ArrayLike, starts: ArrayLike | None
) -> tuple[Array, Array, Array | None]:
    """The arguments as arrays that fit each other and the network, or an InvalidArgument."""
    inputs = checked_inputs(net, u)
    return inputs, checked_targets(net, inputs, t), checked_starts(inputs, starts)


def checked_inputs(net: SRN, u: ArrayLike) -> Array:
    inputs = np.asarray(u)
    if inputs.ndim != 3 or 0 in inputs.shape or inputs.shape[2] != net.inputs:
        raise InvalidArgument(
            f"u has shape {inputs.shape}; it must be (T, B, {net.inputs}), none of them 0"
        )
    if inputs.dtype.kind not in "fiub":
        raise InvalidArgument(f"u has dtype {inputs.dtype}; it must hold real numbers")
    inputs = inputs.astype(net.dtype, copy=False)
    # A sum over the minibatch is finite only if every input is: one pass, no temporary.
    with np.errstate(over="ignore", invalid="ignore"):
        total = inputs.sum()
    if not np.isfinite(total) and not np.isfinite(inputs).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(inputs))[0])
        raise InvalidArgument(f"u has a value that is not finite at {where} (step, example, input)")
    return inputs


def checked_targets(net: SRN, inputs: Array, t: ArrayLike) -> Array:
    targets = np.asarray(t)
    steps, batch, _ = inputs.shape
    if net.output == "softmax":
        if targets.dtype.kind not in "iu" or targets.shape not in ((batch,), (steps, batch)):
            raise InvalidArgument(
                f"t has dtype {targets.dtype} and shape {targets.shape}; a softmax network needs "
                f"integer classes, ({batch},) or ({steps}, {batch})"
            )
        if targets.min() < 0 or targets.max() >= net.outputs:
            raise InvalidArgument(
                f"t has classes from {targets.min()} to {targets.max()}; the network has "
                f"{net.outputs} outputs, so they must lie in 0 … {net.outputs - 1}"
            )
        return targets.astype(np.int64, copy=False)
    shapes = ((batch, net.outputs), (steps, batch, net.outputs))
    if targets.dtype.kind not in "fiub" or targets.shape not in shapes:
        raise InvalidArgument(
            f"t has dtype {targets.dtype} and shape {targets.shape}; a linear network needs real "
            f"numbers, {shapes[0]} or {shapes[1]}"
        )
    targets = targets.astype(net.dtype, copy=False)
    if not np.isfinite(targets).all():
        raise InvalidArgument("t has a value that is not finite")
    return targets


def checked_starts(inputs: Array, starts: ArrayLike | None) -> Array | None:
    if starts is None:
        return None
    first = np.asarray(starts)
    steps, batch, _ = inputs.shape
    if first.shape != (batch,) or first.dtype.kind not in "iu":
        raise InvalidArgument(
            f"starts has dtype {first.dtype} and shape {first.shape}; it must be {batch} integers"
        )
    if first.min() < 0 or first.max() >= steps:
        raise InvalidArgument(
            f"starts go from {first.min()} to {first.max()}; with {steps} steps they must lie in "
            f"0 … {steps - 1}, so that every sequence has at least one step"
        )
    return first.astype(np.int64, copy=False)


def checked_horizon(flow: Flow, horizon: int | None) -> int:
    """h, default T-1; from 1 to T-1."""
    return horizon_within(flow.length, horizon)


def horizon_within(length: int, horizon: int | None) -> int:
    """As `checked_horizon`, for sequences of this length."""
    longest = length - 1
    if longest < 1:
        raise InvalidArgument(
            "sequences of 1 step have no far gradient; to look back needs 2 steps at least"
        )
    if horizon is None:
        horizon = longest
    if not 1 <= horizon <= longest:
        raise InvalidArgument(
            f"horizon is {horizon}; for sequences of {length} steps it may be 1 … {longest}"
        )
    return int(horizon)
