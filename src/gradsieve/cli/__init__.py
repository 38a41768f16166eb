"""The `gradsieve` command: one module a subcommand, loaded when it is called or listed.

A person's own mistake (a `GradsieveError`, or a wrong option) ends with one line and exit code 2,
never with a traceback.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gradsieve.cli.console import Console
from gradsieve.errors import GradsieveError
from gradsieve.version import __version__

SECTIONS = {
    "Learn": ("demo", "train", "fit"),
    "Look": ("report", "watch", "diagnose"),
    "Study": ("reproduce", "bench"),
    "Deploy": ("export",),
}
PANELS = {command: section for section, commands in SECTIONS.items() for command in commands}


class Commands(TyperGroup):
    """Imports the module of a command when it is needed, so that none waits for the others."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(PANELS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in PANELS:
            return None
        module = import_module(f"gradsieve.cli.{cmd_name}")
        alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
        own_parsing = getattr(module, f"{cmd_name.capitalize()}Command", None)
        function = getattr(module, cmd_name)
        # A paragraph in one line, which the terminal wraps at its own width.
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(function.__doc__ or ""))
        panel = PANELS[cmd_name]
        alone.command(cmd_name, help=text, rich_help_panel=panel, cls=own_parsing)(function)
        return typer.main.get_command(alone)


app = typer.Typer(
    name="gradsieve",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"gradsieve {__version__}")
        raise typer.Exit


@app.callback()
def gradsieve(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_say_version, help="Print the version."),
    ] = False,
) -> None:
    """See how far back a recurrent network can learn, and keep that reach while it trains.

    Start with [bold]gradsieve demo[/bold]: it trains networks without and with the sieve and
    compares them. [bold]gradsieve demo --quick[/bold] takes half a minute.
    """


def main() -> None:
    """Run the command line."""
    try:
        app()
    except (GradsieveError, MemoryError) as error:
        said = error if isinstance(error, GradsieveError) else f"out of memory ({error})"
        console = Console(stderr=True, highlight=False)
        console.print(f"gradsieve: {said}", style="red", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("gradsieve: interrupted")
        sys.exit(130)
