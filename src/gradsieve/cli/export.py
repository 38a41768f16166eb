"""`gradsieve export`: a network for a device, as ONNX or as one C header."""

from __future__ import annotations

import dataclasses
import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gradsieve.cli.console import Console
from gradsieve.cli.own_data import (
    FeatureOption,
    MaxValuesOption,
    SeriesOption,
    TargetOption,
    TimeOption,
    read_table,
)
from gradsieve.data import MAX_VALUES, Sequences
from gradsieve.errors import InvalidArgument
from gradsieve.files import write_atomically
from gradsieve.model import Model


class Format(StrEnum):
    onnx = "onnx"
    c = "c"


class Weights(StrEnum):
    float32 = "float32"
    int8 = "int8"


def export(
    network: Annotated[Path, typer.Argument(help="A saved network (.safetensors).")],
    form: Annotated[Format, typer.Option("--format", help="What to write.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; beside the network by default.")
    ] = None,
    weights: Annotated[Weights, typer.Option(help="How the C header holds them.")] = (
        Weights.float32
    ),
    name: Annotated[str, typer.Option(help="What every name in the C header begins with.")] = (
        "network"
    ),
    lengths: Annotated[
        bool | None,
        typer.Option(
            "--lengths/--no-lengths", help="Whether the ONNX file takes lengths; as trained."
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Measure on these sequences what int8 costs.")
    ] = None,
    series: SeriesOption = "series",
    time: TimeOption = None,
    target: TargetOption = None,
    feature: FeatureOption = None,
    max_values: MaxValuesOption = MAX_VALUES,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Write a network for a device and say what it needs.

    [bold]gradsieve export gestures/network.safetensors --format c --weights int8 --data
    gestures.csv -o gestures.h[/bold]
    """
    from gradsieve.export import check_onnx, footprint, to_c, to_onnx

    model = Model.load(network)
    if form is Format.onnx and weights is not Weights.float32:
        raise InvalidArgument("--weights int8 is for --format c; the ONNX file holds float32")
    sequences = None
    if data is not None:
        kind = "regression" if model.classes is None else "classification"
        per = "step" if model.per_step else "series"
        sequences = read_table(data, kind, per, series, time, target, feature, max_values)
    if form is Format.onnx:
        content = to_onnx(model, lengths)
        difference = check_onnx(content, model, sequences)
        path = output or network.with_suffix(".onnx")
        write_atomically(path, content)
        facts: dict[str, Any] = {"bytes": len(content), "checked_within": difference}
        said = (
            f"{len(content)} bytes, {model.net.flat.size} parameters; onnxruntime agrees within "
            f"{difference:.0e}."
        )
    else:
        text = to_c(model, name, weights.value)
        path = output or network.with_suffix(".h")
        write_atomically(path, text)
        needs = footprint(model, weights.value)
        facts = dataclasses.asdict(needs) | {"weights": weights.value}
        facts |= _accuracy(model, sequences, weights)
        said = (
            f"flash {needs.flash} bytes of constants, RAM {needs.ram} bytes of state and "
            f"{needs.stack} of stack; {needs.multiplications_per_step} multiplications and "
            f"{needs.tanh_per_step} tanh a step, {needs.multiplications_per_output} "
            f"multiplications an output.{_cost(facts, weights)}"
        )
    if as_json:
        print(json.dumps({"output": str(path), "format": form.value} | facts))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{path}: {said}")


def _accuracy(model: Model, sequences: Sequences | None, weights: Weights) -> dict[str, Any]:
    """The scores with the network's own weights and with those of the header."""
    from gradsieve.export import quantised

    if sequences is None:
        return {}
    own = model.score(sequences)
    exported = quantised(model).score(sequences) if weights is Weights.int8 else own
    return {"score": own, "exported_score": exported}


def _cost(facts: dict[str, Any], weights: Weights) -> str:
    if "score" in facts:
        return (
            f" Score on the data {facts['score']:.4f}, with these weights "
            f"{facts['exported_score']:.4f}."
        )
    if weights is Weights.int8:
        return " What int8 costs in accuracy is not known: give --data to measure it."
    return ""
