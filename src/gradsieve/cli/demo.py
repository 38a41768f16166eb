"""`gradsieve demo`: the same networks without and with the sieve, side by side."""

from __future__ import annotations

import json
import os
import threading
import time
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.table import Table

from gradsieve import recipes, tasks
from gradsieve.cli.console import Console
from gradsieve.cli.progress import RunsProgress, signed
from gradsieve.network import SRN
from gradsieve.report import write_report
from gradsieve.report.advice import SOLVED
from gradsieve.training import Job, Run, run_one, side_by_side

LABELS = ("off", "on")
HIDDEN = 100


class Size(NamedTuple):
    """How large a demo is."""

    networks: int
    epochs: int


WHOLE, QUICK = Size(6, 300), Size(3, 160)


def demo(
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer networks, fewer updates: half a minute.")
    ] = False,
    length: Annotated[int, typer.Option(help="Time steps of a sequence.")] = 150,
    networks: Annotated[int | None, typer.Option(min=1, help="Networks; 6, or 3 if quick.")] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs of 50 updates, at most; 300, or 160 if quick."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the runs; a new one by default."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Networks at a time.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train networks on the temporal order problem without and with the sieve, and compare.

    The symbols to remember come early, and the answer is asked for at the last step. Each network
    is trained twice by the recipe for own data, from the same initial weights on the same
    minibatches: once with the sieve off and once with it on. Off keeps the rest of the recipe: the
    gradient is scaled (RMSprop) and clipped, and the recurrent weights begin orthogonal. The
    command ends with a table, one sentence and a report.
    """
    usual = QUICK if quick else WHOLE
    size = Size(networks or usual.networks, epochs or usual.epochs)
    folder = output or Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")
    runs = _train(length, size, folder, jobs or os.cpu_count() or 1)
    made = [folder / f"{label}-{network}" for label in LABELS for network in range(size.networks)]
    report = write_report(made, folder / "report.html", title="gradsieve demo")
    if as_json:
        outcome = {label: [run.result() for run in runs[label]] for label in LABELS}
        print(json.dumps(outcome | {"report": str(report)}))
        return
    console = Console(highlight=False)
    console.print(_table(runs))
    console.print(_sentence(runs), style="bold")
    for said in (
        f"The report: {report}",
        f"Open it in a browser: {report.resolve().as_uri()}",
    ):
        console.print(said, soft_wrap=True)


def _train(length: int, size: Size, folder: Path, jobs: int) -> dict[str, list[Run]]:
    """Every network both ways, several at a time."""
    task = tasks.temporal_order(length=length)
    # A look inside at every second record: the report's heat map is made of them. Two mistakes in
    # a thousand at validation end a run, so that one that ends early passes the test too.
    on = recipes.own_data().replaced(
        epochs=size.epochs, sizes=(20_000, 1_000, 2_000), probe_every=2, stop_at=0.997
    )
    ways = {"off": on.replaced(sieve="off"), "on": on}
    console = Console(stderr=True)
    console.print(
        f"{size.networks} networks of {HIDDEN} units learn the temporal order of two symbols among "
        f"{length} steps (a constant guess scores {task.constant_guess:.0%}), each with the "
        f"sieve off and on, by at most {size.epochs * on.budget.iterations:,} updates.\n"
        "Off is the same recipe without the sieve: orthogonal start, scaled and clipped gradient.\n"
        "Neither has a curriculum, so that the sieve alone makes the difference."
    )
    stop = threading.Event()

    def one(network: int, label: str) -> Run:
        name = f"network {network} {label:>3}"
        sizes = task.inputs, HIDDEN, task.outputs, task.output
        net = SRN.random(*sizes, start=on.start, seed=network)
        about = {"label": label, "network": network, "drawn_by": network}
        job = Job(task, ways[label], seed=network, about=about)
        on_record = progress.row(name, size.epochs)
        run = run_one(net, job, folder / f"{label}-{network}", on_record, stop)
        told = f"{run.test_accuracy:.1%} after {run.updates} updates"
        progress.done(name, size.epochs, told)
        return run

    pairs = [(network, label) for network in range(size.networks) for label in LABELS]
    with RunsProgress(console) as progress:
        runs = side_by_side([partial(one, *pair) for pair in pairs], jobs, stop)
    return {label: runs[place :: len(LABELS)] for place, label in enumerate(LABELS)}


def _sentence(runs: dict[str, list[Run]]) -> str:
    """The outcome in one sentence: "4 of 6 networks solved it with the sieve, 0 of 6 without"."""
    off, on = (sum(run.test_accuracy >= SOLVED for run in runs[label]) for label in LABELS)
    count = len(runs["on"])
    return f"{on} of {count} networks solved it with the sieve, {off} of {count} without."


def _table(runs: dict[str, list[Run]]) -> Table:
    table = Table(title="Test accuracy, from the same initial weights")
    for heading in ("network", "off", "updates", "slow Q", "on", "updates", "slow Q", "corrected"):
        table.add_column(heading, justify="right")
    for network, (off, on) in enumerate(zip(runs["off"], runs["on"], strict=True)):
        table.add_row(str(network), *_cells(off), *_cells(on), f"{on.corrected:.0%}")
    table.add_section()
    means = [cell for label in LABELS for cell in _means(runs[label])]
    table.add_row("mean", *means, "", style="bold")
    return table


def _means(runs: list[Run]) -> tuple[str, str, str]:
    accuracy = sum(run.test_accuracy for run in runs) / len(runs)
    return f"{accuracy:.1%}", str(sum(run.updates for run in runs) // len(runs)), ""


def _cells(run: Run) -> tuple[str, str, str]:
    last = run.history[-1]["slow_Q"] if run.history else None
    return f"{run.test_accuracy:.1%}", str(run.updates), signed(last).strip()
