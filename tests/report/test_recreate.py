"""The recipe in a report, run as it stands, gives the run's numbers again."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

import gradsieve as gs
from gradsieve.report.recreate import recreate
from gradsieve.report.runs import Run, read_run


def trained(folder: Path, about: dict[str, Any], sieve: gs.Sieve | None, task: Any) -> Run:
    net = gs.SRN.random(
        task.inputs,
        8,
        task.outputs,
        task.output,
        variance=0.02,
        seed=3,
        gain=about.get("gain", 1),
        recurrent=about.get("recurrent", "gaussian"),
        input_gain=about.get("input_gain", 1),
        bias_spread=about.get("bias_spread", 0),
    )
    settings = gs.training.Settings(
        sieve=sieve,
        learning_rate=1e-3,
        clip=2.0,
        stages=((12, 1),),
        epochs=3,
        iterations=4,
        sizes=(40, 30, 50),
        seed=3,
    )
    gs.training.run_one(net, task, settings, folder, about)
    return read_run(folder)


@pytest.mark.parametrize(
    ("sieve", "task"),
    [
        (None, gs.tasks.temporal_order(length=12)),
        (gs.Sieve((-0.1, 0.1), policy="steer"), gs.tasks.temporal_order(length=12)),
        (gs.Sieve((-0.1, 0.1), policy="hold"), gs.tasks.temporal_order(length=12)),
        (gs.Sieve(), gs.tasks.adding(length=12, convention="pascanu", tolerance=0.3)),
    ],
)
@pytest.mark.parametrize("variance", [0.02, None])
def test_a_recipe_gives_the_same_result_bit_for_bit(
    tmp_path: Path, sieve: gs.Sieve | None, task: Any, variance: float | None
) -> None:
    about = {"network": 3} | ({} if variance is None else {"variance": variance})
    run = trained(tmp_path / "run", about, sieve, task)
    recipe = recreate(run)
    assert recipe is not None
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(recipe, names)
    again = names["run"]
    assert run.result is not None
    assert again.test_accuracy == run.result["test_accuracy"]
    assert [record["loss"] for record in again.history] == run.column("loss")


@pytest.mark.parametrize(
    "start",
    [{"gain": 0.7}, {"recurrent": "identity"}, {"input_gain": 16, "bias_spread": 0.5}],
)
def test_a_recipe_begins_as_the_run_did(tmp_path: Path, start: dict[str, Any]) -> None:
    about = {"network": 3, "variance": 0.02, **start}
    run = trained(tmp_path / "run", about, None, gs.tasks.temporal_order(length=12))
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(str(recreate(run)), names)
    assert [record["loss"] for record in names["run"].history] == run.column("loss")


def test_settings_are_written_as_literals_only() -> None:
    hostile = "'); import os; print('"
    settings = {"task": "adding", "length": hostile, "variance": 1, "seed": {"x": hostile}}
    recipe = recreate(Run(Path("x"), settings, (), None, 0))
    assert recipe is not None
    assert f"length={hostile!r}" in recipe
    assert "seed=None" in recipe
    compile(recipe, "recipe", "exec")


@pytest.mark.parametrize("changed", [{"task": "my own"}, {"label": "random+clip"}])
def test_what_the_settings_do_not_decide_has_no_recipe(changed: dict[str, str]) -> None:
    settings = json.loads('{"task": "adding", "label": "off"}') | changed
    assert recreate(Run(Path("x"), settings, (), None, 0)) is None
