"""A network with all that raw data needs: scaling, names of classes and inputs.

`gradsieve fit` makes one, `diagnose` and `export` take one. It is saved in the network's own file
(the weights, and JSON beside them), so that a plain `SRN.load` reads it too; a network that was
saved without any of this is a model with no scaling.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gradsieve.data import Preparation, Scaling, Sequences, filled
from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.flow import Engine, predict
from gradsieve.network import SRN, Array, Output

PREDICTED_AT_ONCE = 256  # sequences: bounds memory where lengths differ much


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers(ABC):
    """A network that answers raw sequences in the names of the data."""

    scaling: Scaling
    classes: tuple[str, ...] | None  # None: regression
    features: tuple[str, ...]
    per_step: bool = False
    equal_lengths: bool = False  # whether it was trained on sequences of one length
    preparation: Preparation = Preparation()  # of the training data, and of all that follows
    longest: int | None = None  # steps of the longest training sequence

    @property
    @abstractmethod
    def inputs(self) -> int: ...

    @property
    @abstractmethod
    def hidden(self) -> int: ...

    @property
    @abstractmethod
    def parameters(self) -> int:
        """How many weights there are."""

    @property
    @abstractmethod
    def outputs_each(self) -> int:
        """How many classes or values an answer has."""

    @abstractmethod
    def outputs(self, data: Sequences) -> Array:
        """Probabilities or values in the data's units: (N,O), or (steps,O) if per step."""

    @abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, scaling and names into a safetensors file, atomically."""

    def named(self) -> dict[str, Any]:
        """All but the weights, as the JSON that is saved beside them; `named_from` reads it."""
        return {
            "scaling": self.scaling.as_json(),
            "classes": None if self.classes is None else list(self.classes),
            "features": list(self.features),
            "per_step": self.per_step,
            "equal_lengths": self.equal_lengths,
            "preparation": self.preparation.as_dict(),
            "longest": self.longest,
        }

    def check_inputs(self, data: Sequences) -> None:
        """Refuse data that the network cannot take."""
        if data.inputs != self.inputs:
            raise InvalidArgument(
                f"the data has {data.inputs} inputs ({', '.join(data.features[:8])}); the network "
                f"takes {self.inputs} ({', '.join(self.features[:8])})"
            )

    def targets_of(self, data: Sequences) -> Array:
        """The data's targets in this model's numbering of classes."""
        self.check_inputs(data)
        if (data.classes is None) != (self.classes is None) or data.per_step != self.per_step:
            raise InvalidArgument(
                f"the data is for {data.kind} {_per(data.per_step)}; the network was made for "
                f"{'regression' if self.classes is None else 'classification'} "
                f"{_per(self.per_step)}"
            )
        if data.classes is None or self.classes is None:
            if data.outputs != self.outputs_each:
                raise InvalidArgument(
                    f"the data has {data.outputs} targets; the network gives {self.outputs_each}"
                )
            return data.targets
        known = {name: number for number, name in enumerate(self.classes)}
        used = [name for name, count in data.class_counts().items() if count]
        unknown = [name for name in used if name not in known]
        if unknown:
            raise InvalidArgument(
                f"the data has class {unknown[0][:60]!r}; the network knows "
                f"{', '.join(name[:60] for name in self.classes[:20])}"
            )
        return np.array([known.get(name, -1) for name in data.classes])[data.targets]

    def score(self, data: Sequences) -> float:
        """Accuracy, or R² in regression, on these sequences."""
        targets, outputs = self.targets_of(data), self.outputs(data)
        if self.classes is not None:
            return float((outputs.argmax(axis=1) == targets).mean())
        return r_squared(outputs, targets)


@dataclass(frozen=True, eq=False)
class Model(Answers):
    """A network between raw inputs and answers."""

    net: SRN

    @classmethod
    def of(cls, net: SRN) -> Self:
        """A plain network as a model: inputs as they are, classes by number."""
        named = tuple(str(number) for number in range(net.outputs))
        return cls(
            net=net,
            scaling=Scaling.identity(net.inputs),
            classes=named if net.output == "softmax" else None,
            features=tuple(f"input {number}" for number in range(1, net.inputs + 1)),
        )

    @property
    def inputs(self) -> int:
        return self.net.inputs

    @property
    def hidden(self) -> int:
        return self.net.hidden

    @property
    def parameters(self) -> int:
        return int(self.net.flat.size)

    @property
    def outputs_each(self) -> int:
        return self.net.outputs

    def outputs(self, data: Sequences, engine: Engine = "native") -> Array:
        """Probabilities or values in the data's units: (N,O), or (steps,O) if per step."""
        self.check_inputs(data)
        data = filled(data, self.preparation.missing, self.scaling.mean)
        scaled = replace(data, values=self.scaling.inputs(data.values))
        found: Array = np.empty(
            (int(data.offsets[-1]) if self.per_step else data.count, self.net.outputs)
        )
        order = np.argsort(data.lengths, kind="stable")  # neighbours of like length: little padding
        for first in range(0, data.count, PREDICTED_AT_ONCE):
            chosen = order[first : first + PREDICTED_AT_ONCE]
            u, _, starts = scaled.padded(chosen, self.net.dtype)
            y = predict(self.net, u, engine, starts, self.per_step)
            if self.per_step:
                active = np.arange(len(u))[:, None] >= starts
                found[data.steps_of(chosen)] = y.swapaxes(0, 1)[active.T]
            else:
                found[chosen] = y
        return self.scaling.outputs(found)

    def save(self, path: str | os.PathLike[str]) -> None:
        self.net.save(path, {"model": self.named()})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        net, extra = SRN.load_with_extra(path)
        saved = extra.get("model")
        if saved is None:
            return cls.of(net)
        sizes = (net.inputs, net.outputs)
        return cls(net=net, **named_from(path, saved, sizes, net.output))


def named_from(
    path: str | os.PathLike[str], saved: Any, sizes: tuple[int, int], output: Output
) -> dict[str, Any]:
    """The fields that `Answers.named` saved, for a network of these inputs and outputs."""
    try:
        return _named_from(saved, *sizes, output)
    except (InvalidFile, InvalidArgument, TypeError, KeyError, AttributeError) as error:
        raise InvalidFile(
            f"{path}: the names and the scaling beside the network are damaged ({error})"
        ) from error


def _named_from(saved: dict[str, Any], inputs: int, outputs: int, output: Output) -> dict[str, Any]:
    classes, features = saved["classes"], saved["features"]
    if (classes is None) != (output == "linear"):
        raise InvalidFile(f"classes do not go with a {output} output")
    for name, values, size in (
        ("classes", classes if classes is not None else [""] * outputs, outputs),
        ("features", features, inputs),
    ):
        if len(values) != size or not all(isinstance(value, str) for value in values):
            raise InvalidFile(f"{name} must be {size} names")
    longest = saved.get("longest")
    if not (longest is None or (type(longest) is int and longest > 0)):
        raise InvalidFile(f"longest is {longest!r}; it must be a number of steps")
    return {
        "scaling": Scaling.from_json(saved["scaling"], inputs, outputs),
        "classes": None if classes is None else tuple(classes),
        "features": tuple(features),
        "per_step": bool(saved["per_step"]),
        "equal_lengths": bool(saved["equal_lengths"]),
        "preparation": Preparation.from_dict(saved.get("preparation", {})),
        "longest": longest,
    }


def r_squared(outputs: Array, targets: Array) -> float:
    """1 − squared error over squared spread, mean over targets; a constant scores 0.

    Both are in units of the largest target, so that no square overflows or vanishes. A target that
    never changes scores 1 where the outputs meet it, otherwise 0.
    """
    units = np.frexp(np.abs(targets).max(axis=0))[1]
    missed = (outputs != targets).any(axis=0).astype(np.float64)
    with np.errstate(over="ignore"):  # an error that no float holds scores minus infinity
        outputs, targets = np.ldexp(outputs, -units), np.ldexp(targets, -units)
        error = ((outputs - targets) ** 2).sum(axis=0)
        offsets = targets - targets[0]  # exactly 0 for a constant, whose mean may be rounded
        spread = ((offsets - offsets.mean(axis=0)) ** 2).sum(axis=0)
        ratio = np.divide(error, spread, out=missed, where=spread > 0)
    return float((1 - ratio).mean())


def _per(step: bool) -> str:
    return "at every step" if step else "once a sequence"
