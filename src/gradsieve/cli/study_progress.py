"""Progress of a study: how many runs are done, which are in flight, and the time left."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from gradsieve.cli.console import Console
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.execute import progress_of


class StudyProgress:
    """On a terminal a bar for the study and one for each run; elsewhere a line now and then."""

    def __init__(self, console: Console, name: str, folder: Path) -> None:
        self.console, self.name, self.folder = console, name, folder
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._whole = self._bars.add_task(name, total=None, left="")
        self._rows: dict[str, TaskID] = {}
        self._spoke = 0.0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def begin(self, missing: Sequence[RunConfig]) -> None:
        """A new batch of runs, in this order."""
        self._order = [config.key for config in missing]
        self._costs = [config.cost for config in missing]
        # Epochs that an earlier session computed took no time of this one.
        self._had = [self._computed(config) for config in missing]
        self._begun = time.monotonic()

    def watch(self, running: Sequence[RunConfig]) -> None:
        """Called by the runner about once a second with the runs in flight."""
        keys = {config.key for config in running}
        started = max((self._order.index(key) for key in keys), default=len(self._order) - 1) + 1
        done = started - len(keys)
        share = sum(self._computed(config) for config in running)
        finished = sum(self._costs[:started]) - sum(config.cost for config in running) + share
        computed = finished - sum(self._had[:started])
        left = ""
        if computed > 0:
            asked = sum(self._costs) - sum(self._had)
            seconds = (time.monotonic() - self._begun) * (asked / computed - 1)
            left = f"at most {_duration(seconds)} left"
        self._bars.update(self._whole, total=len(self._order), completed=done, left=left)
        for key in list(self._rows):
            if key not in keys:
                self._bars.remove_task(self._rows.pop(key))
        for config in running:
            if config.key not in self._rows:
                name = f"  {config.condition} {config.arm} #{config.network}"
                epochs = config.recipe.budget.epochs
                self._rows[config.key] = self._bars.add_task(name, total=epochs, left="")
            epoch = progress_of(self.folder, config.key)
            self._bars.update(self._rows[config.key], completed=epoch)
        if not self.console.is_terminal and time.monotonic() - self._spoke > 30:
            self._spoke = time.monotonic()
            said = [f"{self.name}: {done} of {len(self._order)} runs", *([left] if left else [])]
            self.console.print(", ".join(said))

    def _computed(self, config: RunConfig) -> int:
        """The steps in time of a run that its folder has, of `config.cost`."""
        return progress_of(self.folder, config.key) * config.condition.length


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
