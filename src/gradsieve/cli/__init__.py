"""The `gradsieve` command: one module a subcommand, errors handled here for all of them.

A person's own mistake (a `GradsieveError`, or a wrong option) ends with one line and exit code 2,
never with a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from gradsieve.cli.bench import bench
from gradsieve.cli.console import Console
from gradsieve.cli.demo import demo
from gradsieve.cli.diagnose import diagnose
from gradsieve.cli.export import export
from gradsieve.cli.fit import fit
from gradsieve.cli.report import report
from gradsieve.cli.reproduce import ReproduceCommand, reproduce
from gradsieve.cli.train import train
from gradsieve.cli.watch import watch
from gradsieve.errors import GradsieveError

app = typer.Typer(
    name="gradsieve",
    help=(
        "See how far back a recurrent network can learn, predict what each weight update will do "
        "to that reach, and keep the updates that hold it.\n\nStart with [bold]gradsieve "
        "demo[/bold]: it trains networks with the sieve off and on and compares them."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SECTIONS: dict[str, tuple[Callable[..., None], ...]] = {
    "Learn": (demo, train, fit),
    "Look": (report, watch, diagnose),
    "Study": (reproduce, bench),
    "Deploy": (export,),
}
OWN_PARSING = {reproduce: ReproduceCommand}
for section, commands in SECTIONS.items():
    for command in commands:
        app.command(rich_help_panel=section, cls=OWN_PARSING.get(command))(command)


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
