"""The simple recurrent network of the paper's Eq. 1: its weights, their initial values, their file.

`Weights` is five arrays that share one flat vector, so that a velocity, a step or a norm of all
weights is one operation on `flat`. A network, a gradient and an update are
all `Weights`. Nothing here computes with a network: see `gradsieve.flow`.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from gradsieve.errors import InvalidArgument, InvalidFile, one_of
from gradsieve.files import parse_object, write_atomically
from gradsieve.start import Start, as_start
from gradsieve.tensors import read_tensors, tensor_bytes

Array = NDArray[Any]
Output = Literal["softmax", "linear"]

FIELDS = ("w_in", "w_rec", "b", "w_out", "b_out")
FORMAT = "gradsieve-srn-1"


def field_shapes(inputs: int, hidden: int, outputs: int) -> tuple[tuple[int, ...], ...]:
    """Shapes of w_in, w_rec, b, w_out, b_out, in the order in which `flat` holds them."""
    return (inputs, hidden), (hidden, hidden), (hidden,), (hidden, outputs), (outputs,)


class Weights:
    """Five arrays w_in (I,H), w_rec (H,H), b (H,), w_out (H,O), b_out (O,), views of one `flat`."""

    __slots__ = ("b", "b_out", "flat", "hidden", "inputs", "outputs", "w_in", "w_out", "w_rec")

    inputs: int
    hidden: int
    outputs: int
    flat: Array
    w_in: Array
    w_rec: Array
    b: Array
    w_out: Array
    b_out: Array

    def __init__(
        self, w_in: ArrayLike, w_rec: ArrayLike, b: ArrayLike, w_out: ArrayLike, b_out: ArrayLike
    ) -> None:
        given = [np.asarray(value) for value in (w_in, w_rec, b, w_out, b_out)]
        _check_fields(given)
        inputs, hidden = given[0].shape
        dtype = np.result_type(*given)
        if dtype not in (np.float32, np.float64):
            dtype = np.dtype(np.float64)
        self._adopt(
            np.concatenate([value.ravel() for value in given]).astype(dtype, copy=False),
            (inputs, hidden, given[3].shape[1]),
        )

    def _adopt(self, flat: Array, sizes: tuple[int, int, int]) -> None:
        bind = object.__setattr__
        self.inputs, self.hidden, self.outputs = sizes
        bind(self, "flat", flat)
        start = 0
        for name, shape in zip(FIELDS, field_shapes(*sizes), strict=True):
            stop = start + math.prod(shape)
            bind(self, name, flat[start:stop].reshape(shape))
            start = stop

    def __setattr__(self, name: str, value: Any) -> None:
        """Assigning an array writes its values: a new array would no longer be a view of `flat`."""
        if name == "flat" or name in FIELDS:
            getattr(self, name)[...] = value
        else:
            object.__setattr__(self, name, value)

    def __getstate__(self) -> tuple[Array, tuple[int, int, int]]:
        return self.flat, (self.inputs, self.hidden, self.outputs)

    def __setstate__(self, state: tuple[Array, tuple[int, int, int]]) -> None:
        """Copies and unpickled weights cut their fields from their own `flat`."""
        self._adopt(*state)

    def like(self, flat: Array) -> Weights:
        """Plain `Weights` of these sizes over another flat vector, which is not copied."""
        weights = Weights.__new__(Weights)
        weights._adopt(flat, (self.inputs, self.hidden, self.outputs))
        return weights

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.flat.dtype

    def fields(self) -> dict[str, Array]:
        """The five arrays by name."""
        return {name: getattr(self, name) for name in FIELDS}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(inputs={self.inputs}, hidden={self.hidden}, "
            f"outputs={self.outputs}, dtype={self.dtype})"
        )


class SRN(Weights):
    """A simple recurrent network (Eq. 1): tanh units, a softmax or linear output.

    >>> net = SRN.random(6, 100, 4, output="softmax", variance=0.01, seed=0)
    >>> net.w_rec.shape, net.output
    ((100, 100), 'softmax')
    """

    __slots__ = ("output",)

    output: Output

    def __init__(
        self,
        w_in: ArrayLike,
        w_rec: ArrayLike,
        b: ArrayLike,
        w_out: ArrayLike,
        b_out: ArrayLike,
        output: Output = "softmax",
    ) -> None:
        super().__init__(w_in, w_rec, b, w_out, b_out)
        self.output = one_of("output", output, get_args(Output))
        if not np.isfinite(self.flat).all():
            raise InvalidArgument("network weights contain NaN or infinity")

    def __getstate__(self) -> tuple[Any, ...]:
        return *super().__getstate__(), self.output

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *weights, self.output = state
        super().__setstate__(tuple(weights))

    @classmethod
    def random(
        cls,
        inputs: int,
        hidden: int,
        outputs: int,
        output: Output = "softmax",
        *,
        start: Start | str = "gaussian",
        seed: int = 0,
        dtype: DTypeLike = np.float32,
        **settings: float,
    ) -> SRN:
        """A network whose weights are drawn from a seed.

        Args:
            start: a `gs.Start`, or the name of how the recurrent matrix begins: "mixed",
                "orthogonal", "identity" or "gaussian".
            seed: the same seed gives the same weights.
            dtype: float32 or float64.
            **settings: beside a name, the other settings of `gs.Start`, such as `variance`.
        """
        for name, size in (("inputs", inputs), ("hidden", hidden), ("outputs", outputs)):
            if size < 1:
                raise InvalidArgument(f"{name} is {size}; it must be at least 1")
        begin = as_start(start, **settings)
        with np.errstate(over="ignore"):  # refused below, where weights are not finite
            values = _drawn(begin, inputs, hidden, outputs, seed)
        try:
            return cls(**values, output=output).astype(dtype)
        except InvalidArgument as error:
            raise InvalidArgument(f"{error}: they are drawn by {begin}") from error

    def copy(self) -> SRN:
        return self.replaced(self.flat.copy())

    def astype(self, dtype: DTypeLike) -> SRN:
        """A copy in float32 or float64."""
        wanted = np.dtype(dtype)
        if wanted not in (np.float32, np.float64):
            raise InvalidArgument(f"dtype is {wanted}; it may be float32 or float64")
        with np.errstate(over="ignore"):
            flat = self.flat.astype(wanted)
        if wanted != self.dtype and not np.isfinite(flat).all():
            raise InvalidArgument(f"network weights exceed what {wanted} holds")
        return self.replaced(flat)

    def replaced(self, flat: Array) -> SRN:
        """A network of this shape and output over another flat vector, which is not copied."""
        net = SRN.__new__(SRN)
        net._adopt(flat, (self.inputs, self.hidden, self.outputs))
        net.output = self.output
        return net

    def save(self, path: str | os.PathLike[str], extra: dict[str, Any] | None = None) -> None:
        """Write the weights as safetensors, atomically; `extra` is JSON that goes along."""
        metadata = {"format": FORMAT, "output": self.output, "extra": json.dumps(extra or {})}
        write_atomically(Path(path), tensor_bytes(self.fields(), metadata))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SRN:
        return cls.load_with_extra(path)[0]

    @classmethod
    def load_with_extra(cls, path: str | os.PathLike[str]) -> tuple[Self, dict[str, Any]]:
        """The network and the `extra` that was saved with it."""
        values, metadata = read_tensors(path, FIELDS, FORMAT, "network", unsealed=True)
        if unknown := set(metadata) - {"format", "output", "extra"}:
            raise InvalidFile(f"{path}: holds {min(unknown)!r}, which no gradsieve network does")
        try:
            net = cls(**values, output=metadata.get("output"))  # type: ignore[arg-type]
        except InvalidArgument as error:
            raise InvalidFile(f"{path}: {error}") from error
        return net, parse_object(path, metadata.get("extra", "{}"))


def _drawn(begin: Start, inputs: int, hidden: int, outputs: int, seed: int) -> dict[str, Array]:
    try:
        return begin.draw(inputs, hidden, outputs, seed)
    except (MemoryError, ValueError, OverflowError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            f"hidden is {hidden}: with {inputs} inputs and {outputs} outputs the weights need "
            f"{8e-9 * hidden * (inputs + hidden + outputs):.3g} GB, more than there is"
        ) from error


def _check_fields(given: list[Array]) -> None:
    for name, value, axes in zip(FIELDS, given, (2, 2, 1, 2, 1), strict=True):
        if value.ndim != axes or 0 in value.shape:
            raise InvalidArgument(
                f"{name} has shape {value.shape}; it must have {axes} axes, none of them empty"
            )
        if value.dtype.kind not in "fiu":
            raise InvalidArgument(f"{name} has dtype {value.dtype}; it must hold real numbers")
    expected = field_shapes(given[0].shape[0], given[0].shape[1], given[3].shape[1])
    for name, value, shape in zip(FIELDS, given, expected, strict=True):
        if value.shape != shape:
            raise InvalidArgument(
                f"{name} has shape {value.shape}; beside w_in {given[0].shape} and "
                f"w_out {given[3].shape} it must be {shape}"
            )
