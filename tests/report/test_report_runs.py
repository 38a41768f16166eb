"""Reading run folders: whole, torn, damaged, foreign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import epoch_record, older_settings, write_run, write_study

from gradsieve import recipes
from gradsieve.errors import InvalidFile
from gradsieve.recipe import Recipe
from gradsieve.report.runs import read_run, read_runs
from gradsieve.sieve import POLICIES, Sieve
from gradsieve.training.corrections import finite


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "full-3", "full", 3, epochs=7))
    assert [epoch["epoch"] for epoch in run.epochs] == [1, 2, 3, 4, 5, 6, 7]
    assert (run.label, run.network, run.chance) == ("full", "3", 0.25)
    assert run.recipe == recipes.paper("full").replaced(epochs=60)
    assert run.result is not None
    assert run.accuracy == run.result["test_accuracy"]


def test_a_half_written_last_line_is_left_out_and_not_called_damage(tmp_path: Path) -> None:
    folder = write_run(tmp_path, epochs=5)
    with (folder / "history.jsonl").open("a") as file:
        file.write('{"epoch": 6, "loss": 1.3')
    run = read_run(folder)
    assert (len(run.epochs), run.damaged_lines) == (5, 0)


def test_damaged_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = write_run(tmp_path, epochs=5)
    lines = (folder / "history.jsonl").read_text().splitlines()
    lines[2] = lines[2][:40] + "\x00\x00"
    lines.insert(1, "[1, 2]")
    lines.insert(1, "{}")
    (folder / "history.jsonl").write_text("\n".join(lines) + "\n")
    run = read_run(folder)
    assert [epoch["epoch"] for epoch in run.epochs] == [1, 2, 4, 5]
    assert run.damaged_lines == 3


def test_of_an_epoch_that_was_written_twice_the_later_line_counts(tmp_path: Path) -> None:
    folder = write_run(tmp_path, epochs=3)
    with (folder / "history.jsonl").open("a") as file:
        file.write(json.dumps({"epoch": 2, "loss": 42.0}) + "\n")
    run = read_run(folder)
    assert run.column("loss")[1] == 42.0
    assert len(run.epochs) == 3


@given(st.binary(max_size=200))
def test_no_bytes_in_a_history_or_result_stop_the_reader(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    folder = write_run(tmp_path_factory.mktemp("run"), epochs=2)
    with (folder / "history.jsonl").open("ab") as file:
        file.write(junk + b"\n")
    (folder / "result.json").write_bytes(junk)
    assert len(read_run(folder).epochs) >= 2


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "1", True, [1], 10**400])
def test_what_is_no_finite_number_is_none(value: object) -> None:
    assert finite(value) is None


def test_a_study_is_read_in_natural_order(tmp_path: Path) -> None:
    write_study(tmp_path, networks=12, labels=("full",), epochs=1)
    assert [run.network for run in read_runs([tmp_path])] == [str(index) for index in range(12)]


def test_a_folder_given_twice_counts_once(tmp_path: Path) -> None:
    write_study(tmp_path, networks=2, labels=("full",), epochs=1)
    assert len(read_runs([tmp_path, tmp_path / "full-1"])) == 2


def test_an_unfinished_run_has_its_best_validation_accuracy(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path, epochs=9, finished=False))
    assert run.accuracy == max(epoch["accuracy"] for epoch in run.epochs)


@pytest.mark.parametrize("policy", [*POLICIES, "off"])
def test_a_run_without_a_label_is_called_by_its_policy(tmp_path: Path, policy: str) -> None:
    run = read_run(write_run(tmp_path, changed={"label": None, "sieve": policy}))
    assert run.label == policy


def test_reach_is_judged_by_slow_q_in_the_range_of_the_policy_that_holds_it(tmp_path: Path) -> None:
    ranges = {"hold": (-3.0, 0.2), "auto": (-3.0, 0.2), "skip": Sieve().range, "off": Sieve().range}
    for policy, expected in ranges.items():
        sieve = None if policy == "off" else Sieve(policy, q_range=(-3, 0.2))
        run = read_run(write_run(tmp_path / policy, epochs=2, changed={"sieve": sieve}))
        assert (run.measure, run.q_range) == ("slow_Q", expected)


def test_a_history_without_slow_q_is_judged_by_its_own_q(tmp_path: Path) -> None:
    older = epoch_record(1, "full", 0)
    del older["slow_Q"]
    for label, expected in (("full", (-1.0, 1.0)), ("off", None)):
        folder = write_run(tmp_path / label, label)
        (folder / "run.json").write_text(json.dumps(older_settings(label)))
        (folder / "history.jsonl").write_text(json.dumps(older) + "\n")
        run = read_run(folder)
        assert (run.measure, run.q_range) == ("Q", expected)


def test_a_folder_of_version_0_1_has_the_recipe_that_it_was_trained_by(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    changed: dict[str, Any] = {
        "sieve": {"q_range": [-2, 0.5], "policy": "hold", "max_change": None},
        "recurrent": "identity",
        "stages": [[20, 6]],
        "warmup": 0.1,
        "clip": 1.0,
    }
    (folder / "run.json").write_text(json.dumps(older_settings(**changed)))
    run = read_run(folder)
    expected = Recipe().replaced(
        start="identity",
        sieve=Sieve("hold", q_range=(-2, 0.5), limit=float("inf")),
        stages=((0.2, 0.1),),
        warm_up=0.1,
        clip=1.0,
        epochs=60,
    )
    assert run.recipe.differing(expected) == {}
    assert run.stages == ((20, 6),)
    assert run.drawn


def test_a_recipe_that_is_none_is_refused_by_the_name_of_its_file(tmp_path: Path) -> None:
    folder = write_run(tmp_path)
    stored = json.loads((folder / "run.json").read_text())
    for broken, said in (
        ({"budget": {"epochs": -1}}, "epochs is -1"),
        ({"budget": []}, "it must be an object"),
        ({"engine": {}}, "it may have the parts"),
        ("none", "it may have the parts"),
    ):
        (folder / "run.json").write_text(json.dumps({**stored, "recipe": broken}))
        with pytest.raises(InvalidFile, match=r"run\.json: .*" + said):
            read_run(folder)


def test_folders_that_hold_no_run_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="nowhere: no such folder"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(InvalidFile, match="neither a run nor a folder of runs"):
        read_runs([tmp_path])
    (tmp_path / "run.json").write_text('{"format": "something else"}')
    with pytest.raises(InvalidFile, match="not the settings of a gradsieve run"):
        read_runs([tmp_path])
