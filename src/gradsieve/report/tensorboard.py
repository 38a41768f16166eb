"""Event files that TensorBoard shows, from the records of a run's history.

They are written by TensorBoard's own writer; no TensorFlow or PyTorch is needed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from gradsieve.errors import GradsieveError, needs_extra
from gradsieve.training.corrections import finite, reasons

# TensorBoard groups by the word before the slash.
TAGS = {
    "loss": "loss/training",
    "validation_loss": "loss/validation",
    "accuracy": "accuracy/validation",
    "slow_Q": "reach/slow Q",
    "Q": "reach/Q as the policy measures it",
    "Q_min": "reach/Q lowest minibatch",
    "Q_max": "reach/Q highest minibatch",
    "relative": "reach/predicted relative change",
    "gradient_norm": "gradient/norm",
    "kept": "sieve/kept share",
    "corrected": "sieve/corrected share",
    "stalls": "sieve/stalls",
    "nonfinite": "sieve/not finite",
}
PROBE_TAGS = {
    "activation_mean": "inside/activation mean",
    "activation_median": "inside/activation median",
    "saturated": "inside/saturated share",
    "predicted": "prediction/predicted change",
    "measured": "prediction/measured change",
}


class TensorBoardSink:
    """Takes each record of a run's history as it comes; the step is the epoch.

    A run that goes on from its checkpoint opens a new event file; TensorBoard then drops the old
    one's events from that epoch on.
    """

    def __init__(self, folder: Path) -> None:
        with needs_extra("TensorBoard output", "tensorboard"):
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        self._event, self._session = event_pb2.Event, event_pb2.SessionLog
        self._summary = summary_pb2.Summary
        try:
            self._writer = EventFileWriter(str(folder), flush_secs=2)
        except OSError as error:
            raise GradsieveError(f"{folder}: cannot be written ({error.strerror})") from error
        self._begun = False

    def __call__(self, record: Mapping[str, Any]) -> None:
        step = int(record["epoch"])
        if not self._begun:
            start = self._session(status=self._session.START)
            self._writer.add_event(self._event(wall_time=time.time(), step=step, session_log=start))
            self._begun = True
        values = [
            self._summary.Value(tag=tag, simple_value=value) for tag, value in scalars(record)
        ]
        self._writer.add_event(
            self._event(wall_time=time.time(), step=step, summary=self._summary(value=values))
        )
        # An epoch is rare and a kill is sudden: each record goes to the disk at once.
        self._writer.flush()

    def close(self) -> None:
        """Write out all events that still wait."""
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def scalars(record: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The finite numbers of an epoch, by TensorBoard's tags."""
    yield from _known(record, TAGS)
    for reason, count in reasons(record).items():
        yield f"reasons/{reason}", float(count)
    probe = record.get("probe")
    if not isinstance(probe, Mapping):
        return
    yield from _known(probe, PROBE_TAGS)
    lags, norms = probe.get("lags"), probe.get("log10_norm")
    if isinstance(lags, list) and isinstance(norms, list):
        known = [(lag, norm) for lag, norm in zip(lags, norms, strict=False) if norm is not None]
        for lag, norm in _spread(known):
            yield f"gradient norm, log10/{lag} steps back", float(norm)


def _known(values: Mapping[str, Any], tags: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for name, tag in tags.items():
        value = finite(values.get(name))
        if value is not None:
            yield tag, value


def _spread(known: list[tuple[int, float]], most: int = 8) -> list[tuple[int, float]]:
    """A few lags from first to last: 48 charts would be too many to look at."""
    if len(known) <= most:
        return known
    step = (len(known) - 1) / (most - 1)
    return [known[math.floor(index * step + 0.5)] for index in range(most)]
