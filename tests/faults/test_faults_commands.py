"""`gradsieve reproduce`, `gradsieve fit` and Ray's workers, killed at random moments."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from killing import descends, finished, killed, leftovers, share

import gradsieve as gs
from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.experiments.runner import run_all
from gradsieve.experiments.store import Store

STUDY = ["-m", "gradsieve", "reproduce", "table1", "--networks", "1", "--epochs", "2",
         "--lengths", "100", "--tasks", "temporal_order", "--jobs", "2"]  # fmt: skip
FIT = ["--epochs", "40", "--networks", "1", "--learning-rate", "0.02", "--noise", "0",
       "--jobs", "2"]  # fmt: skip


def rows(store: Path) -> list[tuple[RunConfig, dict[str, object]]]:
    """The rows of a study, but for how long they took."""
    return [
        (config, {name: value for name, value in row.items() if name not in ("seconds", "cpu_ms")})
        for config, row in Store(store).items()
    ]


def test_a_study_that_is_killed_has_the_rows_of_one_that_is_not(tmp_path: Path) -> None:
    command = {
        name: [*STUDY, "--folder", tmp_path / name / "runs", "--output", tmp_path / name / "out"]
        for name in ("calm", "wild")
    }
    began = time.monotonic()
    code, said = finished(command["calm"])
    assert code == 0, said
    longest = time.monotonic() - began
    assert killed(command["wild"], share(0.1), 1, longest) > 0
    code, said = finished(command["wild"])
    assert code == 0, said
    calm, wild = (rows(tmp_path / name / "runs" / "store.sqlite") for name in ("calm", "wild"))
    assert calm
    assert wild == calm
    assert not leftovers(tmp_path / "wild")


def test_a_fit_that_is_killed_leaves_nothing_in_the_way_of_the_next(tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    rows = [f"{one},{step},{one % 2 - 0.5 + step / 20},{'ab'[one % 2]}"
            for one in range(40) for step in range(8)]  # fmt: skip
    data.write_text("\n".join(["series,time,x,target", *rows]) + "\n")
    command = {
        name: ["-m", "gradsieve", "fit", data, "-o", tmp_path / name / "out", *FIT]
        for name in ("calm", "wild")
    }
    began = time.monotonic()
    code, said = finished(command["calm"])
    assert code == 0, said
    longest = time.monotonic() - began
    assert killed(command["wild"], share(0.1), 2, longest) > 0
    code, said = finished([*command["wild"], "--force"])
    assert code == 0, said
    assert not leftovers(tmp_path / "wild")
    assert {path.name for path in (tmp_path / "wild").iterdir()} == {"out"}
    calm, wild = (
        (tmp_path / name / "out" / "network.safetensors").read_bytes() for name in ("calm", "wild")
    )
    assert wild == calm


@pytest.mark.xdist_group("ray")
def test_workers_of_ray_that_are_killed_are_replaced(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: its workers are NOT KILLED")
    configs = [
        RunConfig(
            Condition("temporal_order", 12), network,
            gs.recipes.paper("off").replaced(
                epochs=200, sizes=(200, 50, 50), validate_every=10, probe_every=0, clip=1.0,
                learning_rate=1e-3, stop_at=None,
            ),
            hidden=10,
        )
        for network in range(share(0.05))
    ]  # fmt: skip
    calm, wild = Store(tmp_path / "calm.sqlite"), Store(tmp_path / "wild.sqlite")
    run_all(configs, calm, tmp_path / "calm", jobs=1)
    hit: set[str] = set()  # Ray tries a run four times; each is killed once

    def kill(running: object) -> None:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                name = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            fresh = {config.key for config in running} - hit  # type: ignore[attr-defined]
            own = descends(int(entry.name), os.getpid())  # other tests may have workers too
            if own and name.startswith(b"ray::execute") and fresh:
                hit.add(fresh.pop())
                os.kill(int(entry.name), signal.SIGKILL)
                return

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        run_all(configs, wild, tmp_path / "wild", ray_address="local", watch=kill)
    finally:
        ray.shutdown()
    assert hit, "no worker was caught at work"
    assert rows(tmp_path / "wild.sqlite") == rows(tmp_path / "calm.sqlite")
