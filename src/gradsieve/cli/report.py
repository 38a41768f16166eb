"""`gradsieve report`: pictures of runs in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradsieve.cli.console import Console


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, or folders that hold runs.", metavar="RUN…")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path(
        "report.html"
    ),
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "gradsieve report",
) -> None:
    """Write a report about runs: one HTML file that needs no network.

    [bold]gradsieve report runs/first runs/second -o report.html[/bold]

    Runs from the same initial network are compared with each other. A run that goes on is shown up
    to its last record.
    """
    from gradsieve.report import write_report

    written = write_report(runs, output, title)
    size = written.stat().st_size / 1e6
    Console().print(f"{written} ({size:.1f} MB)", highlight=False, soft_wrap=True)
