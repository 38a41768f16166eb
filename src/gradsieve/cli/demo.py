"""`gradsieve demo`: the same networks with the sieve off and on, side by side, in three minutes."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gradsieve import tasks
from gradsieve.cli.console import Console
from gradsieve.cli.progress import RunsProgress, signed
from gradsieve.network import SRN
from gradsieve.report import write_report
from gradsieve.sieve import Sieve
from gradsieve.training import Run, Settings, run_one

SETTINGS = Settings(
    learning_rate=1e-3,
    clip=1.0,
    rms_decay=0.999,
    validate_every=5,
    sizes=(20_000, 1_000, 2_000),
    stop_at=0.99,
    measure="slow Q",
    probe_every=1,  # a look inside at every record: the report's heat map is made of them
)
SIEVE = Sieve(policy="hold")


def demo(
    length: Annotated[int, typer.Option(help="Time steps of a sequence.")] = 150,
    networks: Annotated[int, typer.Option(min=1, help="Networks of each kind.")] = 6,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of 50 updates, at most.")] = 300,
    variance: Annotated[
        float, typer.Option(help="Of the initial weights: at 0.005 the gradient vanishes sooner.")
    ] = 0.01,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder of the runs; a new one by default."),
    ] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Networks at a time.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train networks on the temporal order problem with the sieve off and on, and compare.

    What is to be remembered comes in the first steps and is asked for in the last one. Each network
    is trained twice from the same initial weights, on the same minibatches, by the same gradient
    descent, scaled (RMSprop) and clipped: once plainly, and once with the sieve, which predicts
    what each update will do to the far gradient and holds that in its safe range. Ends with a table
    and a report.
    """
    folder = output or Path("runs") / time.strftime("demo-%Y%m%d-%H%M%S")
    task = tasks.temporal_order(length=length)
    initial = [
        SRN.random(task.inputs, 100, task.outputs, task.output, variance, seed)
        for seed in range(networks)
    ]
    console = Console(stderr=True)
    console.print(
        f"{networks} networks of 100 units, temporal order of {length} steps (a constant guess "
        f"scores {task.constant_guess:.0%}), sieve off and on, at most {epochs * 50} updates each."
    )
    stop = threading.Event()
    with RunsProgress(console) as progress:

        def one(network: int, label: str) -> Run:
            name = f"network {network} {label:>3}"
            settings = replace(
                SETTINGS, sieve=SIEVE if label == "on" else None, epochs=epochs, seed=network
            )
            run = run_one(
                initial[network],
                task,
                settings,
                folder / f"{label}-{network}",
                {"label": label, "network": network, "variance": variance},
                progress.row(name, epochs),
                stop,
            )
            progress.done(name, epochs, f"{run.test_accuracy:.1%} after {run.updates} updates")
            return run

        pairs = [(network, label) for network in range(networks) for label in ("off", "on")]
        with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
            futures = [pool.submit(one, *pair) for pair in pairs]
            try:
                runs = [future.result() for future in futures]
            except KeyboardInterrupt:
                stop.set()
                runs = [future.result() for future in futures]
    report = folder / "report.html"
    write_report([folder / f"{label}-{network}" for network, label in pairs], report)
    off, on = runs[0::2], runs[1::2]
    if as_json:
        outcome = {"off": [run.result() for run in off], "on": [run.result() for run in on]}
        print(json.dumps(outcome | {"report": str(report)}))
        return
    shown = Console()
    shown.print(_table(off, on))
    shown.print(f"The pictures: {report}\nThe runs:     {folder}")


def _table(off: list[Run], on: list[Run]) -> Table:
    table = Table(title="Test accuracy, same initial weights")
    for heading in ("network", "off", "updates", "Q", "on", "updates", "Q", "steered"):
        table.add_column(heading, justify="right")
    for network, (without, with_sieve) in enumerate(zip(off, on, strict=True)):
        table.add_row(str(network), *_cells(without), *_cells(with_sieve), _steered(with_sieve))
    means = [f"{sum(run.test_accuracy for run in runs) / len(runs):.1%}" for runs in (off, on)]
    updates = [f"{sum(run.updates for run in runs) // len(runs)}" for runs in (off, on)]
    table.add_section()
    table.add_row("mean", means[0], updates[0], "", means[1], updates[1], "", "", style="bold")
    return table


def _cells(run: Run) -> tuple[str, str, str]:
    last = run.history[-1]["Q"] if run.history else None
    return f"{run.test_accuracy:.1%}", str(run.updates), signed(last).strip()


def _steered(run: Run) -> str:
    """The share of updates that the sieve corrected."""
    steered = sum(
        count
        for record in run.history
        for reason, count in record["reasons"].items()
        if "steered" in reason
    )
    return f"{steered / max(1, run.updates):.0%}"
