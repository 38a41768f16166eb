"""Options that every command which reads a person's data has.

A command takes one parameter `table`, and `table_options` puts the options in its place:

    @table_options
    def command(data: Path, *, table: Table) -> None: ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from gradsieve.data import MAX_VALUES, Columns, KindChoice, PerChoice, Preparation, Sequences, read
from gradsieve.errors import InvalidArgument
from gradsieve.model import Answers


@dataclass(frozen=True)
class Table:
    """Which column of a file is what, and how much of it is read."""

    series: Annotated[str, typer.Option(help="Column that names the series.")] = "series"
    time_column: Annotated[
        str | None, typer.Option(help="Column that orders rows; 'time' if there is one.")
    ] = None
    target: Annotated[
        list[str] | None,
        typer.Option(help="Target column, 'target' by default; several for several quantities."),
    ] = None
    feature: Annotated[
        list[str] | None,
        typer.Option(help="Input column, several times; default: all other columns."),
    ] = None
    max_values: Annotated[int, typer.Option(help="Refuse files with more values than this.")] = (
        MAX_VALUES
    )

    def read(
        self,
        path: Path,
        kind: str = "auto",
        per: str = "auto",
        preparation: Preparation | None = None,
    ) -> Sequences:
        """The sequences of a file."""
        for name, value, known in (("kind", kind, KindChoice), ("per", per, PerChoice)):
            if value not in get_args(known):
                choices = ", ".join(get_args(known))
                raise InvalidArgument(f"--{name} is {value!r}; it may be {choices}")
        columns = Columns(
            series=self.series,
            time=self.time_column,
            targets=tuple(self.target or ("target",)),
            features=tuple(self.feature) if self.feature else None,
        )
        return read(
            path,
            kind=kind,  # type: ignore[arg-type]
            per=per,  # type: ignore[arg-type]
            columns=columns,
            preparation=preparation,
            max_values=self.max_values,
        )

    def read_for(self, model: Answers, path: Path | None) -> Sequences | None:
        """The sequences of a file, prepared as the network's were; None without a file."""
        if path is None:
            return None
        kind = "regression" if model.classes is None else "classification"
        per = "step" if model.per_step else "series"
        return self.read(path, kind, per, model.preparation)


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator that fills a command's parameter `table` from options."""
    hints = get_type_hints(Table, include_extras=True)
    options = [
        Parameter(
            item.name, Parameter.KEYWORD_ONLY, default=item.default, annotation=hints[item.name]
        )
        for item in fields(Table)
    ]

    @functools.wraps(command)
    def run(**given: Any) -> None:
        table = Table(**{option.name: given.pop(option.name) for option in options})
        command(table=table, **given)

    own = inspect.signature(command, eval_str=True).parameters
    order: list[Parameter] = []
    for name, parameter in own.items():
        order += options if name == "table" else [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
    run.__signature__ = inspect.Signature(order)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
    return run
