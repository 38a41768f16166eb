"""TensorBoard events of a study's runs, read from their folders while they go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradsieve.experiments.config import RunConfig
from gradsieve.report.tensorboard import TensorBoardSink
from gradsieve.training.record import RunFolder


class StudyEvents:
    """Follows the history of each run that it is shown; a run is one folder of events."""

    def __init__(self, events: Path, folder: Path) -> None:
        self.events, self.folder = events, folder
        self._sinks: dict[RunConfig, TensorBoardSink] = {}
        self._sent: dict[RunConfig, int] = {}

    def watch(self, running: Sequence[RunConfig]) -> None:
        """Send new records of the runs in flight, and the rest of those that have ended."""
        for config in {*running, *self._sinks}:
            if config not in self._sinks:
                place = f"{config.condition.task}-{config.condition.length}"
                name = f"{place}/{config.arm}-{config.network}-{config.key}"
                self._sinks[config] = TensorBoardSink(self.events / name)
                self._sent[config] = 0
            self._send(config)
            if config not in running:
                self._sinks.pop(config).close()

    def _send(self, config: RunConfig) -> None:
        records = RunFolder(self.folder / config.key).read_history()
        for record in records[self._sent[config] :]:
            self._sinks[config](record)
        self._sent[config] = len(records)
