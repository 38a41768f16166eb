"""Where readings go: CSV, TensorBoard, W&B, a run folder, and a function of one's own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import gradsieve.torch as gst
from gradsieve.cli import app
from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.report.runs import read_run


def step(module: nn.Module) -> torch.Tensor:
    module.zero_grad()
    loss = module(torch.randn(30, 4, 3))[0][-1].square().mean()
    loss.backward()
    return loss


def test_csv_and_tensorboard_hold_what_was_read(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    module = nn.GRU(3, 4)
    sinks = [gst.ToTensorBoard(tmp_path / "board"), gst.ToCSV(tmp_path / "readings.csv")]
    with gst.watch(module, sinks=sinks) as look:
        step(module)
        reading = look.read(loss=0.5)
    with (tmp_path / "readings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["name"]: float(row["value"]) for row in rows} == reading
    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    for name, value in reading.items():
        assert events.Scalars(name)[0].value == pytest.approx(value, rel=1e-5)


def test_a_function_gets_the_reading_with_what_lies_behind_it() -> None:
    module, seen = nn.GRU(3, 4), []
    look = gst.watch(module, sinks=[lambda step, reading: seen.append((step, reading))])
    step(module)
    values = look.read()
    ((at, reading),) = seen
    assert (at, dict(reading)) == (0, values)
    assert [len(one.curve) for one in reading.layers] == [30]
    assert str(reading.judgement) == str(look.diagnosis())


def test_a_sink_that_fails_does_not_end_the_training() -> None:
    def full(at: int, reading: object) -> None:
        raise OSError("no space left on device")

    module, seen = nn.GRU(3, 4), []
    look = gst.watch(module, every=1, sinks=[full, lambda at, reading: seen.append(at)])
    step(module)
    with pytest.warns(UserWarning, match="no space left"):
        look.read()
    step(module)
    look.read()
    assert seen == [0, 1]


def test_wandb_offline_keeps_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.raises(GradsieveError, match=r"wandb\.init\(\)"):
        gst.ToWandb()
    module = nn.GRU(3, 4)
    with wandb.init(mode="offline", dir=tmp_path, project="gradsieve") as run:
        look = gst.watch(module, every=1, sinks=[gst.ToWandb()])
        for _ in range(2):
            loss = step(module)
            run.log({"loss": loss.item()})
            reading = look.read()
        summary = dict(run.summary)
    assert summary["gradsieve/step"] == 1
    for name, value in reading.items():
        assert summary[f"gradsieve/{name}"] == pytest.approx(value)
    assert list(tmp_path.rglob("*.wandb"))


def training(folder: Path, steps: int = 6, policy: str | None = "hold") -> gst.Watch:
    torch.manual_seed(0)
    module = nn.GRU(3, 6, num_layers=2)
    optimizer: torch.optim.Optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
    if policy is not None:
        optimizer = gst.Sieve(module, optimizer, policy)
    to = gst.ToRunFolder(folder, module, optimizer, task="toy")
    look = gst.watch(module, optimizer, every=2, sinks=[to])
    for _ in range(steps):
        loss = step(module)
        look.read(loss)
        optimizer.step()
    return look


def test_a_run_folder_knows_the_sieve_also_where_the_watch_does_not(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = nn.GRU(3, 6)
    optimizer = gst.Sieve(module, torch.optim.Adam(module.parameters(), lr=0.01), "hold")
    look = gst.watch(module, every=2, sinks=[gst.ToRunFolder(tmp_path / "run", module, optimizer)])
    for _ in range(6):
        look.read(step(module))
        optimizer.step()
    assert sum(read_run(tmp_path / "run").epochs[-1]["reasons"].values()) == 2


def test_a_run_folder_holds_the_history_of_a_pytorch_training(tmp_path: Path) -> None:
    look = training(tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.result is None
    assert run.label == "hold"
    assert run.column("updates") == [1, 3, 5]
    assert run.damaged_lines == 0
    last = run.epochs[-1]
    assert set(last["layers"]) == {"GRU/layer0", "GRU/layer1"}
    slow = [one["slow_Q"] for one in last["layers"].values()]
    assert last["slow_Q"] == max(slow, key=abs)
    assert sum(last["reasons"].values()) == 2
    assert last["probe"]["lags"] == [0, 1, 2, 4, 8, 15, 29]
    assert last["probe"]["slow_Q"][-1] == pytest.approx(last["slow_Q"])
    look.close()
    assert read_run(tmp_path / "run").result is not None


def test_a_training_that_goes_on_goes_on_in_its_folder(tmp_path: Path) -> None:
    training(tmp_path / "run").close()
    training(tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.column("updates") == [1, 3, 5, 6, 8, 10]
    assert run.result is None


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"format": "gradsieve-run-2", "recipe": {}}))
    with pytest.raises(InvalidFile, match="another run"):
        training(tmp_path)


def test_report_shows_a_pytorch_training_and_nothing_that_it_did_not_have(tmp_path: Path) -> None:
    training(tmp_path / "off", policy=None).close()
    training(tmp_path / "hold").close()
    page = tmp_path / "report.html"
    done = CliRunner().invoke(app, ["report", str(tmp_path), "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "GRU" in text
    assert "Adam" in text
    assert "reset_velocity" not in text  # a setting of the core's own optimiser
    assert "GRU/layer1" in text
    assert "“hold”" in text


@pytest.mark.parametrize(
    ("old", "new"), [("CSVSink", gst.ToCSV), ("TensorBoardSink", gst.ToTensorBoard)]
)
def test_the_names_of_version_0_1_warn(old, new):
    with pytest.warns(DeprecationWarning, match=f"gst.{old} is now gst.{new.__name__}"):
        assert getattr(gst, old) is new
    with pytest.raises(AttributeError, match="no attribute 'Sink'"):
        _ = gst.Sink
