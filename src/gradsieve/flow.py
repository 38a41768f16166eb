"""Forward and backward through time: a minibatch in, its `Flow` out.

`backpropagate` checks its arguments once, for every engine, and returns the engine's `Flow`:
states, deltas and gradient. `gradsieve.change` asks a flow for the effect of an update on its far
gradient. Shapes are those of `gradsieve.engine`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from gradsieve import kernel, reference
from gradsieve.engine import Derivative, Engine, Flow, Measure, Norms
from gradsieve.errors import InvalidArgument, one_of
from gradsieve.network import SRN, Array

__all__ = [
    "Derivative",
    "Engine",
    "Flow",
    "Measure",
    "Norms",
    "backpropagate",
    "checked_batch",
    "checked_engine",
    "checked_horizon",
    "predict",
    "propagate",
]

FLOWS: dict[str, type[Flow]] = {
    "native": kernel.NativeFlow,
    "reference": reference.ReferenceFlow,
}
PREDICT: dict[str, Callable[..., Array]] = {
    "native": kernel.predict,
    "reference": reference.predict,
}


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
    return FLOWS[checked_engine(engine)](net, u, t, starts, reuse)


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
    return PREDICT[checked_engine(engine)](net, u, starts, per_step)


def checked_engine(engine: str) -> Engine:
    return one_of("engine", engine, FLOWS)  # type: ignore[no-any-return]


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


def checked_horizon(length: int, horizon: int | None) -> int:
    """h of sequences of T steps, from 1 to T-1; by default T-1."""
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
