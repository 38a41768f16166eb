"""Event files, read back by TensorBoard's own reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import epoch_record
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gradsieve.errors import GradsieveError
from gradsieve.report.tensorboard import TensorBoardSink, scalars


def series(folder: Path, tag: str) -> dict[int, float]:
    reader = EventAccumulator(str(folder))
    reader.Reload()
    return {event.step: event.value for event in reader.Scalars(tag)}


def test_tensorboard_reads_what_was_recorded(tmp_path: Path) -> None:
    records = [epoch_record(epoch, "full", 0) for epoch in range(1, 6)]
    with TensorBoardSink(tmp_path) as sink:
        for record in records:
            sink(record)
    by_epoch = {record["epoch"]: record for record in records}
    accuracy = {epoch: record["accuracy"] for epoch, record in by_epoch.items()}
    assert series(tmp_path, "accuracy/validation") == pytest.approx(accuracy)
    slow_Q = {epoch: record["slow_Q"] for epoch, record in by_epoch.items()}
    assert series(tmp_path, "reach/slow Q") == pytest.approx(slow_Q)
    assert sorted(series(tmp_path, "inside/saturated share")) == [1, 3, 5]
    kept = {epoch: float(record["reasons"]["IN_RANGE"]) for epoch, record in by_epoch.items()}
    assert series(tmp_path, "reasons/in range") == kept


def test_a_resumed_run_replaces_what_it_does_again(tmp_path: Path) -> None:
    with TensorBoardSink(tmp_path) as sink:
        for epoch in range(1, 6):
            sink(epoch_record(epoch, "off", 0))
    with TensorBoardSink(tmp_path) as sink:
        for epoch in range(4, 8):
            sink(epoch_record(epoch, "full", 1))
    expected = {epoch: epoch_record(epoch, "off", 0)["loss"] for epoch in (1, 2, 3)}
    expected |= {epoch: epoch_record(epoch, "full", 1)["loss"] for epoch in (4, 5, 6, 7)}
    assert series(tmp_path, "loss/training") == pytest.approx(expected)


def test_what_is_not_finite_is_left_out() -> None:
    record = {"epoch": 1, "loss": float("nan"), "Q": None, "accuracy": 0.5, "probe": None}
    assert dict(scalars(record)) == {"accuracy/validation": 0.5}


def test_of_many_lags_a_few_from_first_to_last_are_shown() -> None:
    probe = {"lags": list(range(48)), "log10_norm": [float(-lag) for lag in range(48)]}
    shown = dict(scalars({"epoch": 1, "probe": probe}))
    assert len(shown) == 8
    assert shown["gradient norm, log10/0 steps back"] == 0
    assert shown["gradient norm, log10/47 steps back"] == -47


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GradsieveError, match="cannot be written"):
        TensorBoardSink(tmp_path / "file" / "events")
