"""The lines of Python in a report, run as they stand, give the run's numbers again."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from made_runs import older_settings, recorded, settings

import gradsieve as gs
from gradsieve.report.recreate import recreate
from gradsieve.report.runs import RecordedRun, read_run
from gradsieve.training import Extension, Job, run_one

BASE = gs.Recipe().replaced(
    variance=0.02,
    learning_rate=1e-3,
    clip=2.0,
    stages=((0.85, 0.4),),
    epochs=3,
    iterations=4,
    sizes=(40, 30, 50),
)
ORDER = gs.tasks.temporal_order(length=12)


def trained(
    folder: Path,
    recipe: gs.Recipe,
    task: Any = ORDER,
    about: dict[str, Any] | None = None,
    extension: Extension = Extension(),  # noqa: B008
) -> RecordedRun:
    net = gs.SRN.random(task.inputs, 8, task.outputs, task.output, start=recipe.start, seed=3)
    about = {"network": 3, "drawn_by": 3} if about is None else about
    run_one(net, Job(task, recipe, 4, extension=extension, about=about), folder)
    return read_run(folder)


def again(run: RecordedRun) -> gs.Run:
    lines = recreate(run)
    assert lines is not None
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(lines, names)
    return names["run"]


@pytest.mark.parametrize(
    ("sieve", "task"),
    [
        (None, ORDER),
        (gs.Sieve("steer", q_range=(-0.1, 0.1)), ORDER),
        (gs.Sieve("hold", q_range=(-0.1, 0.1), limit=float("inf")), ORDER),
        (gs.Sieve("skip"), gs.tasks.adding(length=12, convention="pascanu", tolerance=0.3)),
        (gs.Sieve(), ORDER),
    ],
)
@pytest.mark.parametrize("drawn", [True, False])
def test_the_lines_give_the_same_result_bit_for_bit(
    tmp_path: Path, sieve: gs.Sieve | None, task: Any, drawn: bool
) -> None:
    about = {"network": 3} | ({"drawn_by": 3} if drawn else {})
    run = trained(tmp_path / "run", BASE.replaced(sieve=sieve), task, about)
    made = again(run)
    assert run.result is not None
    assert made.test_accuracy == run.result["test_accuracy"]
    assert [record["loss"] for record in made.history] == run.column("loss")
    assert made.recipe == run.recipe


@pytest.mark.parametrize(
    "start",
    [{"gain": 0.7}, {"start": "identity"}, {"input_gain": 16, "bias_spread": 0.5},
     {"start": "orthogonal"}],
)  # fmt: skip
def test_the_lines_begin_as_the_run_did(tmp_path: Path, start: dict[str, Any]) -> None:
    run = trained(tmp_path / "run", BASE.replaced(**start))
    assert [record["loss"] for record in again(run).history] == run.column("loss")


def test_settings_are_written_as_literals_only() -> None:
    hostile = "'); import os; print('"
    lines = recreate(recorded(settings(task="adding", length=hostile, seed={"x": hostile})))
    assert lines is not None
    assert f"length={hostile!r}" in lines
    assert "seed=None" in lines
    compile(lines, "lines", "exec")


def test_what_a_recipe_does_not_decide_has_no_lines(tmp_path: Path) -> None:
    assert recreate(recorded(settings())) is not None
    assert recreate(recorded(settings(task="my own"))) is None
    run = trained(tmp_path / "run", BASE, extension=Extension(leaves_out=lambda u: False))
    assert recreate(run) is None
    watched = Extension(observe=lambda net, outcome, stepper: None)
    assert recreate(trained(tmp_path / "watched", BASE, extension=watched)) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"label": "random+clip"},
        {"sieve": {"policy": "skip", "orientation": "listing"}},
        {"sieve": {"policy": "steer", "max_change": 0.5}},
    ],
)
def test_what_version_0_1_did_and_no_recipe_says_has_no_lines(changed: dict[str, Any]) -> None:
    assert recreate(recorded(older_settings())) is not None
    assert recreate(recorded(older_settings(**changed))) is None
