"""PyTorch's recurrent modules with a linear head, from memory or from a safetensors file.

A file holds the state of any module that has one `nn.RNN`, `nn.GRU` or `nn.LSTM` and an `nn.Linear`
after it: `safetensors.torch.save_model(module, "model.safetensors")`. A small description adds the
facts that tensors do not tell (JSON, every field may be left out):

    {"cell": "tanh", "recurrent": "rnn", "head": "fc", "output": "softmax", "per": "series",
     "classes": ["left", "right"], "inputs": ["x", "y"], "mean": [0, 9.8], "spread": [1, 0.2],
     "missing": "last"}
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load

from gradsieve.data import Missing, Preparation, Scaling
from gradsieve.errors import GradsieveError, InvalidArgument, InvalidFile
from gradsieve.export._portable import Cell, Layer, Portable
from gradsieve.files import parse_object, read_file
from gradsieve.network import Array, Output

MODES: dict[str, Cell] = {"RNN_TANH": "tanh", "RNN_RELU": "relu", "GRU": "gru", "LSTM": "lstm"}
FIRST = "weight_ih_l0"


@dataclass(frozen=True)
class Description:
    """Facts that the tensors of a file do not tell; None is inferred, or numbered."""

    cell: Cell | None = None  # a file says how many gates there are; one gate is taken as tanh
    recurrent: str | None = None  # the recurrent module's name within the saved one
    head: str | None = None  # the linear module's name
    output: Output = "softmax"
    classes: Sequence[str] | None = None
    inputs: Sequence[str] | None = None
    mean: Sequence[float] | None = None  # of each input, subtracted from it
    spread: Sequence[float] | None = None  # of each input, that it is then divided by
    per: Literal["series", "step"] = "series"
    missing: Missing = "refuse"

    def __post_init__(self) -> None:
        allowed = {
            "cell": (None, *get_args(Cell)),
            "output": get_args(Output),
            "per": ("series", "step"),
            "missing": get_args(Missing),
        }
        for name, known in allowed.items():
            if getattr(self, name) not in known:
                choices = ", ".join(str(choice) for choice in known if choice is not None)
                raise InvalidArgument(f"{name} is {getattr(self, name)!r}; it may be {choices}")

    @classmethod
    def from_json(cls, path: Path) -> Description:
        """The description in a file."""
        try:
            values = parse_object(path, read_file(path).decode("utf-8", errors="replace"))
        except FileNotFoundError as error:
            raise InvalidFile(f"{path}: no such file") from error
        names = [item.name for item in dataclasses.fields(cls)]
        if unknown := sorted(set(values) - set(names)):
            raise InvalidFile(f"{path}: has {unknown[0]!r}; it may have {', '.join(names)}")
        try:
            return cls(**values)
        except GradsieveError as error:
            raise InvalidFile(f"{path}: {error}") from error


def from_torch(module: Any, head: Any, **description: Any) -> Portable:
    """A PyTorch recurrent module and the `nn.Linear` that reads its last state, for export.

    Args:
        module: an `nn.RNN`, `nn.GRU` or `nn.LSTM` of any number of layers, in one direction.
        head: an `nn.Linear` on its output.
        **description: the fields of `Description`: `classes`, `inputs`, `mean`, `spread`, `output`,
            `per` and `missing`.
    """
    mode = getattr(module, "mode", None)
    if mode not in MODES:
        raise InvalidArgument(
            f"module is {type(module).__name__}; it must be an nn.RNN, nn.GRU or nn.LSTM"
        )
    if getattr(head, "weight", None) is None or head.weight.ndim != 2:
        raise InvalidArgument(f"head is {type(head).__name__}; it must be an nn.Linear")
    tensors = {f"recurrent.{name}": value for name, value in module.state_dict().items()}
    tensors |= {f"head.{name}": value for name, value in head.state_dict().items()}
    arrays = {name: value.detach().cpu().numpy() for name, value in tensors.items()}
    asked = Description(
        **{"cell": MODES[mode], "recurrent": "recurrent", "head": "head"} | description
    )
    return from_tensors(arrays, asked)


def holds_torch(path: str | os.PathLike[str]) -> bool:
    """Whether a safetensors file has tensors that are named as PyTorch names them."""
    return bool(_recurrent_prefixes(_load(path)))


def read_torch(path: str | os.PathLike[str], description: Description | None = None) -> Portable:
    """The network in a safetensors file of a PyTorch module."""
    arrays = _load(path)
    try:
        return from_tensors(arrays, description or Description())
    except InvalidArgument as error:
        raise InvalidFile(f"{path}: {error}") from error


def _load(path: str | os.PathLike[str]) -> dict[str, Array]:
    try:
        return load(read_file(path))
    except FileNotFoundError as error:
        raise InvalidFile(f"{path}: no such file") from error
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise InvalidFile(f"{path}: no safetensors file that can be read ({error})") from error


def from_tensors(arrays: Mapping[str, Array], asked: Description) -> Portable:
    """The network that these tensors, named as PyTorch names them, are the weights of."""
    recurrent = _prefix(arrays, asked.recurrent, "recurrent", _recurrent_prefixes(arrays))
    for name in arrays:
        if name.startswith(recurrent) and name.endswith("_reverse"):
            raise InvalidArgument(
                "the recurrent module is bidirectional; a device knows one direction only"
            )
        if name.startswith(f"{recurrent}weight_hr"):
            raise InvalidArgument("the recurrent module has proj_size, which is not exported")
    w_hh = arrays[f"{recurrent}weight_hh_l0"]
    hidden = int(w_hh.shape[1])
    cell = asked.cell or _cell(len(w_hh), hidden)
    layers: list[Layer] = []
    while f"{recurrent}weight_ih_l{len(layers)}" in arrays:
        layers.append(_layer(arrays, f"{recurrent}%s_l{len(layers)}", cell, hidden))
    heads = [
        name.removesuffix("weight")
        for name, value in arrays.items()
        if name.endswith("weight") and value.ndim == 2 and value.shape[1] == hidden
    ]
    head = _prefix(arrays, asked.head, "head", heads)
    w_out = _single(arrays[f"{head}weight"])
    outputs, inputs = len(w_out), int(layers[0].w_ih.shape[1])
    classes = asked.classes
    if classes is None and asked.output == "softmax":
        classes = [str(number) for number in range(outputs)]
    return Portable(
        cell=cell,
        layers=tuple(layers),
        w_out=w_out,
        b_out=_single(arrays.get(f"{head}bias", np.zeros(outputs))),
        output=asked.output,
        scaling=_scaling(asked, inputs, outputs),
        classes=None if classes is None else tuple(map(str, classes)),
        features=tuple(asked.inputs or (f"input {number + 1}" for number in range(inputs))),
        per_step=asked.per == "step",
        preparation=Preparation(missing=asked.missing),
    )


def _layer(arrays: Mapping[str, Array], names: str, cell: Cell, hidden: int) -> Layer:
    """One layer; the two biases of PyTorch are one, but for the candidate n of a GRU."""
    w_ih, w_hh = _single(arrays[names % "weight_ih"]), _single(arrays[names % "weight_hh"])
    none = np.zeros(len(w_ih), dtype=np.float32)
    b_ih = _single(arrays.get(names % "bias_ih", none))
    b_hh = _single(arrays.get(names % "bias_hh", none))
    if cell != "gru" or b_hh.shape != (3 * hidden,):
        return Layer(w_ih, w_hh, b_ih + b_hh)
    gates = 2 * hidden
    b = np.concatenate([b_ih[:gates] + b_hh[:gates], b_ih[gates:]])
    return Layer(w_ih, w_hh, b, b_hh[gates:])


def _recurrent_prefixes(arrays: Mapping[str, Array]) -> list[str]:
    return [name.removesuffix(FIRST) for name in arrays if name.endswith(FIRST)]


def _prefix(arrays: Mapping[str, Array], asked: str | None, what: str, found: list[str]) -> str:
    """The beginning of the names of a module's tensors."""
    if asked is not None:
        prefix = f"{asked}." if asked else ""
        if prefix not in found:
            raise InvalidArgument(
                f"{what} is {asked!r}; the file has {', '.join(list(arrays)[:20]) or 'no tensor'}"
            )
        return prefix
    if len(found) != 1:
        names = ", ".join(repr(prefix.removesuffix(".")) for prefix in found) or "none"
        raise InvalidArgument(
            f"there must be one {what} module, and there is {names}; name it as {what!r} in the "
            "description"
        )
    return found[0]


def _cell(rows: int, hidden: int) -> Cell:
    gates: dict[int, Cell] = {1: "tanh", 3: "gru", 4: "lstm"}
    if rows % hidden or rows // hidden not in gates:
        raise InvalidArgument(f"weight_hh_l0 has {rows} rows for {hidden} units; no cell has these")
    return gates[rows // hidden]


def _scaling(asked: Description, inputs: int, outputs: int) -> Scaling:
    given = {
        "mean": [0.0] * inputs if asked.mean is None else asked.mean,
        "spread": [1.0] * inputs if asked.spread is None else asked.spread,
    }
    try:
        return Scaling.from_json(given, inputs, outputs)
    except InvalidFile as error:
        raise InvalidArgument(str(error)) from error


def _single(values: Array) -> Array:
    if values.dtype.kind != "f" or not np.isfinite(values).all():
        raise InvalidArgument("the weights are not all finite numbers")
    return np.ascontiguousarray(values, dtype=np.float32)
