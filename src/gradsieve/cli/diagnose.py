"""`gradsieve diagnose`: how far back a saved network learns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as RichTable

from gradsieve.cli.console import Console
from gradsieve.cli.own_data import Table, table_options
from gradsieve.diagnosis import Diagnosis
from gradsieve.export import load_model
from gradsieve.model import Answers, Model


@table_options
def diagnose(
    network: Annotated[Path, typer.Argument(help="A saved network (.safetensors).")],
    data: Annotated[
        Path | None, typer.Argument(help="Sequences to look at; white noise by default.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the diagnosis into this .png, .svg or .pdf file.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Length of the white noise.")] = 100,
    *,
    table: Table,
    seed: Annotated[int, typer.Option(help="Seed of the noise.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the diagnosis as JSON.")] = False,
) -> None:
    """Say how far back a network's gradient reaches, what that means, and what to try next.

    [bold]gradsieve diagnose gestures/network.safetensors gestures.csv --picture reach.png[/bold]
    """
    from gradsieve.diagnosis import diagnose as look
    from gradsieve.diagnosis import draw

    model = load_model(network)
    found = look(model, table.read_for(model, data), steps, seed)
    if picture is not None:
        draw(found, model.net if isinstance(model, Model) else model, picture)
    if as_json:
        print(json.dumps(found.as_dict()))
        return
    console = Console(highlight=False, soft_wrap=True)
    console.print(str(found))
    console.print(_table(found, model))
    if picture is not None:
        console.print(f"Picture: {picture}")


def _table(found: Diagnosis, model: Answers) -> RichTable:
    table = RichTable(show_header=False, box=None, pad_edge=False)
    source = "sequences of the data" if found.of_data else "sequences of white noise"
    rows = [
        ("looked at", f"{found.sequences} {source}, up to {found.steps} steps"),
        ("reach", f"{found.reach} steps"),
        ("slow Q", _over(found.slow_Q, found.horizon)),
        ("Q of Eq. 14", _over(found.Q, found.horizon)),
        ("gradient per step back", "–" if found.factor is None else f"× {found.factor:.3f}"),
        ("spectral radius", _number(found.spectral_radius)),
        ("largest singular value", _number(found.largest_singular_value)),
        ("saturated (|z| > 0.9)", f"{found.saturated:.1%}"),
        ("median |z|", f"{found.activation_median:.3f}"),
    ]
    if found.loss is not None:
        rows.append(("loss", f"{found.loss:.4g}; a constant guess has {found.constant_loss:.4g}"))
    if found.score is not None:
        score = f"{found.score:.1%}" if model.classes is not None else f"{found.score:.3f}"
        rows.append(("accuracy" if model.classes is not None else "R²", score))
    for name, value in rows:
        table.add_row(name, value)
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _over(value: float | None, horizon: int) -> str:
    return "–" if value is None else f"{value:+.2f} over {horizon} steps"
