"""`gradsieve watch`: the report of a run, live in a browser while it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gradsieve.cli.console import Console
from gradsieve.report.live import DEFAULT_PORT, serve


def watch(
    folder: Annotated[
        Path, typer.Argument(help="A run folder, or a folder of runs; it may not exist yet.")
    ],
    port: Annotated[
        int, typer.Option(help="Port on this machine; 0 takes a free one.")
    ] = DEFAULT_PORT,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open it in a browser.")
    ] = False,
) -> None:
    """Show a run live in a browser, from before it begins until after it ends.

    [bold]gradsieve watch runs/first[/bold]

    Only this machine can open the page. Ctrl-C ends it; the run does not notice.
    """

    def ready(address: str) -> None:
        Console().print(
            f"Watching {folder} at {address} (Ctrl-C ends)",
            highlight=False,
            soft_wrap=True,
        )
        if browser:
            typer.launch(address)

    serve(folder, port, title=f"gradsieve: {folder.name or folder}", ready=ready)
