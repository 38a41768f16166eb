"""The network in a file: of gradsieve, simple or gated, or of PyTorch."""

from __future__ import annotations

import os
from typing import Any, get_args

import numpy as np
from safetensors import SafetensorError, safe_open

from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.export._from_torch import Description, holds_torch, read_torch
from gradsieve.export._portable import FORMAT, GATES, Layer, Portable, portable
from gradsieve.files import check_file, parse_object
from gradsieve.model import Model, named_from
from gradsieve.network import Array, Output
from gradsieve.tensors import read_tensors

HEAD = ("head.weight", "head.bias")
LAYER = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
MOST_LAYERS = 100


def read_network(path: str | os.PathLike[str], description: Description | None = None) -> Portable:
    """The network in a file, of gradsieve or of PyTorch, as the exports take it."""
    if description is not None or (_format(path) is None and holds_torch(path)):
        return read_torch(path, description)
    return portable(load_model(path))


def load_model(path: str | os.PathLike[str]) -> Model | Portable:
    """The model that `gradsieve fit` saved: a `Model` of tanh units, or a gated `Portable`."""
    return _load_gated(path) if _format(path) == FORMAT else Model.load(path)


def _format(path: str | os.PathLike[str]) -> str | None:
    """The format that the file names; None where it names none, or is no such file."""
    try:
        check_file(path)
        with safe_open(os.fspath(path), framework="np") as file:
            found: Any = (file.metadata() or {}).get("format")
    except (SafetensorError, OSError, MemoryError, TypeError, AttributeError):
        return None
    return found if isinstance(found, str) and found.startswith("gradsieve") else None


def _load_gated(path: str | os.PathLike[str]) -> Portable:
    _, metadata = read_tensors(path, (), FORMAT, "network")
    cell, output, depth = (metadata.get(name, "") for name in ("cell", "output", "layers"))
    if cell not in GATES or output not in get_args(Output):
        raise InvalidFile(
            f"{path}: its cell is {cell!r} and its output {output!r}, which no network has"
        )
    if not (depth.isascii() and depth.isdigit() and 1 <= int(depth) <= MOST_LAYERS):
        raise InvalidFile(f"{path}: it has {depth[:20]!r} layers; that must be a small number")
    layers = [f"recurrent.%s_l{number}" for number in range(int(depth))]
    names = [layer % name for layer in layers for name in LAYER]
    arrays, _ = read_tensors(path, (*HEAD, *names), FORMAT, "network")
    for name, array in arrays.items():
        axes = 2 if "weight" in name else 1
        if array.dtype != np.float32 or array.ndim != axes or not np.isfinite(array).all():
            raise InvalidFile(f"{path}: {name} is no array of {axes} axes of finite float32")
    w_out, b_out = (arrays[name] for name in HEAD)
    sizes = (arrays["recurrent.weight_ih_l0"].shape[1], len(b_out))
    saved = parse_object(path, metadata.get("model"))
    found = [_layer(cell, *(arrays[layer % name] for name in LAYER)) for layer in layers]
    named = named_from(path, saved, sizes, output)  # type: ignore[arg-type]
    try:
        return Portable(cell, tuple(found), w_out, b_out, output, **named)  # type: ignore[arg-type]
    except InvalidArgument as error:
        raise InvalidFile(f"{path}: {error}") from error


def _layer(cell: str, w_ih: Array, w_hh: Array, b: Array, recurrent: Array) -> Layer:
    if cell != "gru":
        return Layer(w_ih, w_hh, b)
    return Layer(w_ih, w_hh, b, recurrent[2 * w_hh.shape[1] :])
