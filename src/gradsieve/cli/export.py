"""`gradsieve export`: a network for a device, as ONNX or as one C header."""

from __future__ import annotations

import dataclasses
import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gradsieve.cli.console import Console
from gradsieve.cli.own_data import Table, table_options
from gradsieve.data import Sequences
from gradsieve.errors import InvalidArgument
from gradsieve.export import (
    Description,
    Portable,
    check_onnx,
    emulated,
    footprint,
    quantised,
    read_network,
    to_c,
    to_onnx,
)
from gradsieve.files import write_atomically


class Format(StrEnum):
    onnx = "onnx"
    c = "c"


class Board(StrEnum):
    cortex_m4f = "cortex-m4f"
    cortex_m3 = "cortex-m3"
    cortex_m0 = "cortex-m0"


class Precision(StrEnum):
    float32 = "float32"
    int8 = "int8"


@table_options
def export(
    network: Annotated[
        Path, typer.Argument(help="A network of gradsieve or of PyTorch (.safetensors).")
    ],
    form: Annotated[Format, typer.Option("--format", help="Format of the file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; beside the network by default.")
    ] = None,
    weights: Annotated[Precision, typer.Option(help="Format of the matrices.")] = Precision.float32,
    name: Annotated[str, typer.Option(help="Prefix of every name in the C header.")] = ("network"),
    streaming: Annotated[
        bool, typer.Option("--streaming", help="ONNX: one step at a time, state in and out.")
    ] = False,
    lengths: Annotated[
        bool | None,
        typer.Option(
            "--lengths/--no-lengths",
            help="Whether the ONNX file takes lengths; default: as in training.",
        ),
    ] = None,
    description: Annotated[
        Path | None,
        typer.Option(help="JSON with the classes, inputs and scaling of a PyTorch network."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Sequences on which the loss of accuracy is measured.")
    ] = None,
    emulate: Annotated[
        Board | None,
        typer.Option(help="C: run it on this processor by QEMU and count its instructions."),
    ] = None,
    *,
    table: Table,
    as_json: Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")] = False,
) -> None:
    """Write a network for a device, and print the memory and the operations that it needs.

    [bold]gradsieve export gestures/network.safetensors --format c --weights int8 --data
    gestures.csv -o gestures.h[/bold]

    A safetensors file of a PyTorch module with one nn.RNN, nn.GRU or nn.LSTM and a linear head is
    taken as well.
    """
    if emulate is not None and form is not Format.c:
        raise InvalidArgument("--emulate needs --format c")
    described = None if description is None else Description.from_json(description)
    model = read_network(network, described)
    sequences = table.read_for(model, data)
    exported = quantised(model) if weights is Precision.int8 else model
    facts: dict[str, Any] = {"format": form.value, "weights": weights.value}
    if form is Format.onnx:
        content = to_onnx(model, lengths, weights.value, streaming)
        facts["checked_within"] = check_onnx(content, exported, sequences)
        path = output or network.with_suffix(".onnx")
        write_atomically(path, content)
        said = f"{len(content)} bytes; onnxruntime agrees within {facts['checked_within']:.0e}."
    else:
        text = to_c(model, name, weights.value)
        path = output or network.with_suffix(".h")
        write_atomically(path, text)
        said = "one C99 header."
    facts |= {"output": str(path), "bytes": path.stat().st_size}
    facts |= dataclasses.asdict(footprint(model, weights.value)) | _scores(
        model, exported, sequences
    )
    if emulate is not None:
        ran = emulated(model, sequences, weights.value, emulate.value)
        facts["emulated"] = {
            "board": ran.board,
            "instructions_per_step": round(ran.instructions),
            "code": ran.code,
            "stack": ran.stack,
        }
    if as_json:
        print(json.dumps(facts))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{path}: {said} {_needs(facts)}{_counted(facts)}{_cost(facts)}")


def _scores(model: Portable, exported: Portable, sequences: Sequences | None) -> dict[str, float]:
    """The scores with the network's own weights and with those of the file."""
    if sequences is None:
        return {}
    return {"score": model.score(sequences), "exported_score": exported.score(sequences)}


def _needs(facts: dict[str, Any]) -> str:
    in_c = "" if facts["format"] == "c" else "As a C header: "
    return (
        f"{in_c}{facts['parameters']} parameters, flash {facts['flash']} bytes of constants, RAM "
        f"{facts['ram']} bytes of state and {facts['stack']} of stack; "
        f"{facts['multiplications_per_step']} multiplications and {facts['tanh_per_step']} tanh a "
        f"step, {facts['multiplications_per_output']} multiplications an output."
    )


def _counted(facts: dict[str, Any]) -> str:
    if "emulated" not in facts:
        return ""
    ran = facts["emulated"]
    return (
        f" On an emulated {ran['board']}: {ran['instructions_per_step']} instructions a step with "
        f"its output, {ran['code']} bytes of code in flash, {ran['stack']} bytes of stack."
    )


def _cost(facts: dict[str, Any]) -> str:
    if "score" in facts:
        return (
            f" Score on the data {facts['score']:.4f}, with these weights "
            f"{facts['exported_score']:.4f}."
        )
    if facts["weights"] == "int8":
        return " The loss of accuracy by int8 is not known: give --data to measure it."
    return ""
