"""Options that every command which reads a person's data has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from gradsieve.data import Columns, KindChoice, PerChoice, Sequences, read
from gradsieve.errors import InvalidArgument

KindOption = Annotated[
    str, typer.Option(help="auto, classification or regression: what targets are.")
]
PerOption = Annotated[str, typer.Option(help="auto, series or step: what has one target.")]
SeriesOption = Annotated[str, typer.Option(help="Column that names the series.")]
TimeOption = Annotated[
    str | None, typer.Option(help="Column that orders rows; 'time' if there is one.")
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(help="Target column, 'target' by default; several for several quantities."),
]
FeatureOption = Annotated[
    list[str] | None, typer.Option(help="Input column; all that are left by default.")
]
MaxValuesOption = Annotated[int, typer.Option(help="Refuse files with more values than this.")]


def read_table(
    path: Path,
    kind: str,
    per: str,
    series: str,
    time: str | None,
    target: list[str] | None,
    feature: list[str] | None,
    max_values: int,
) -> Sequences:
    for name, value, known in (("kind", kind, KindChoice), ("per", per, PerChoice)):
        if value not in get_args(known):
            choices = ", ".join(get_args(known))
            raise InvalidArgument(f"--{name} is {value!r}; it may be {choices}")
    columns = Columns(
        series=series,
        time=time,
        targets=tuple(target or ("target",)),
        features=tuple(feature) if feature else None,
    )
    return read(
        path,
        kind=kind,  # type: ignore[arg-type]
        per=per,  # type: ignore[arg-type]
        columns=columns,
        max_values=max_values,
    )
