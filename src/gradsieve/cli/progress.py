"""Live progress of several runs: a row each, with accuracy, slow Q, corrections and time left.

On a terminal it is a table that moves; elsewhere one plain line per run that ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Self

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gradsieve.cli.console import Console


class RunsProgress:
    """Rows are made as runs begin and stay when they end. Threads may call it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._live = console.is_terminal
        self._rows: dict[str, TaskID] = {}
        self._lock = threading.Lock()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
            TextColumn("[bold]{task.fields[accuracy]}[/bold]"),
            TextColumn("slow Q {task.fields[slow_Q]}"),
            TextColumn("corrected {task.fields[corrected]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def row(self, name: str, epochs: int) -> Callable[[dict[str, Any]], None]:
        """A function that takes each record of this run's history."""
        with self._lock:
            unknown: dict[str, Any] = dict.fromkeys(("accuracy", "slow_Q", "corrected"), "–")
            task = self._progress.add_task(name, total=epochs, **unknown)
            self._rows[name] = task

        def update(record: dict[str, Any]) -> None:
            self._progress.update(
                task,
                completed=record["epoch"],
                accuracy=f"{record['accuracy']:6.1%}",
                slow_Q=signed(record["slow_Q"]),
                corrected=f"{record['corrected']:4.0%}",
            )

        return update

    def done(self, name: str, epochs: int, outcome: str) -> None:
        """The run has ended, perhaps before its last epoch."""
        if self._live:
            self._progress.update(self._rows[name], total=epochs, completed=epochs)
        else:
            self.console.print(f"{name}: {outcome}", highlight=False)


def signed(value: float | None) -> str:
    return "   –" if value is None else f"{value:+5.2f}"
