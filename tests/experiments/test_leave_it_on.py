"""The study `leave-it-on`: its rows and arms, its plan, its table from a record, a small run."""

import csv
import math
from dataclasses import replace

import pytest
from rows import row
from typer.testing import CliRunner

from gradsieve import recipes
from gradsieve.cli import app
from gradsieve.experiments import leave_it_on, record
from gradsieve.experiments.config import REPORTED, TASKS, Condition, RunConfig
from gradsieve.experiments.execute import execute
from gradsieve.experiments.leave_it_on import ORTHOGONAL, RECOMMENDED, SKIP, USUAL, TableRow
from gradsieve.experiments.leave_it_on_tables import Line, full_table, short_table, updates_to
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope

SMALL = Scope(tasks=("temporal_order",), lengths=(100,), networks=2, epochs=2)
HERE = TableRow(Condition("temporal_order", 100))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store.sqlite")


def test_the_rows_are_those_that_are_promised():
    rows = leave_it_on.rows()
    assert len(set(rows)) == len(rows)
    places = {(row.condition.task, row.condition.length) for row in rows if row.cell == "tanh"}
    paper = {(task, length) for task in TASKS for length in (100, 150, 200, 300, 500, 1000)}
    others = {
        ("copy_memory", 100), ("copy_memory", 500), ("memorization", 100),
        ("random_permutation", 100), ("digits", 64), ("mnist", 196), ("mnist", 784),
        ("characters", 100),
    }  # fmt: skip
    assert places >= paper | others
    assert sum(task.startswith("series ") for task, _ in places) == 6
    cells = {(row.condition.task, row.cell) for row in rows if row.cell != "tanh"}
    assert cells == {
        (task, cell)
        for task in ("digits", "first_symbol", "copy_memory")
        for cell in ("nn.RNN", "nn.GRU", "nn.LSTM")
    }


def test_recommended_is_the_recipe_as_it_is_but_for_what_a_row_gives(store):
    way = next(way for way in leave_it_on.arms_of(HERE) if way.name == RECOMMENDED)
    run = way.run(HERE.condition, 0, leave_it_on.EPOCHS, {})
    assert set(run.recipe.differing(recipes.recommended())) <= {"probe_every", "sizes"}
    for one in leave_it_on.rows():
        usual, orthogonal, recommended = leave_it_on.arms_of(one)[:3]
        assert usual.recipe.sieve is orthogonal.recipe.sieve is None
        assert recommended.recipe.sieve == recipes.recommended().sieve
        assert recommended.searched is None
        assert orthogonal.recipe.start.recurrent == "orthogonal"


def test_a_rate_is_searched_over_whole_runs_of_other_networks(store):
    wanted = leave_it_on.plan(SMALL, store)
    searched = [run for run in wanted if run.network not in REPORTED]
    assert {run.arm for run in searched} == {USUAL, ORTHOGONAL}
    assert {run.recipe.budget.epochs for run in searched} == {SMALL.epochs}
    assert {run.arm for run in wanted if run.network in REPORTED} == {RECOMMENDED}


def filled(store, scope=SMALL, accuracy=lambda run: 0.5):
    """A store with a made-up row for all that the plan asks for."""
    while missing := store.missing(leave_it_on.plan(scope, store)):
        for run in missing:
            value = accuracy(run)
            store.add(run, row(value, corrected=0.1, cpu_ms=2.0, curve=[[100, 0.3], [200, value]],
                               at_length={"100": value}))  # fmt: skip
    return store


def line_of(store, scope=SMALL):
    return Line.of(HERE.condition, HERE.cell, leave_it_on.arms_of(HERE), scope, store)


def test_networks_are_paired_and_the_first_rounds_come_first(store):
    scope = replace(SMALL, networks=3)
    filled(store, scope)
    runs = [run for run in leave_it_on.plan(scope, store) if run.network in REPORTED]
    arms = {USUAL, ORTHOGONAL, RECOMMENDED, SKIP}
    assert {(run.arm, run.network) for run in runs} == {(arm, n) for arm in arms for n in range(3)}
    assert [run.network for run in runs].index(2) == 2 * len(arms)


def test_a_key_is_that_of_the_same_run_however_it_was_written():
    torch = RunConfig(HERE.condition, 0, recipes.paper("off"), cell="nn.GRU")
    core = replace(torch, cell="tanh")
    assert RunConfig.from_json(torch.as_json()) == torch
    assert torch.key != core.key
    assert "cell" not in core.as_dict()  # so that older records keep their keys
    older = core.as_dict()
    del older["recipe"]["optimiser"]["rms_bound"]  # of a version that did not have the setting
    older["recipe"]["optimiser"]["momentum"] = 0.90
    assert RunConfig.from_dict(older).key == replace(core, arm="another name").key


def test_the_table_says_what_the_rows_come_to_and_what_is_not_run(store):
    filled(store, accuracy=lambda run: 0.995 if run.arm == RECOMMENDED else 0.26)
    table = full_table([line_of(store)], networks=2)
    told = {line.split(" | ")[3]: line.split(" | ") for line in table.splitlines()[2:]}
    assert told[RECOMMENDED][4:8] == ["2 of 2", "**99.5%**", "99.5% – 99.5%", "2 of 2"]
    assert told[RECOMMENDED][8:13] == ["99.0%", "2 of 2", "200", "0.4", "1.00"]
    assert told[USUAL][9:12] == ["0 of 2", "–", "–"]
    assert "by chance" in told[USUAL][-1]
    short = short_table([line_of(store)])
    assert "| +73.5 | 0.500 | open |" in short  # two pairs cannot be certain
    nothing = full_table([line_of(Store(store.path.parent / "none.sqlite"))], networks=2)
    assert nothing.endswith("Not run yet: temporal_order, T=100.\n")
    assert "No row has" in short_table([])


def test_rows_of_an_older_recipe_are_left_out(store):
    filled(store)
    older = leave_it_on.arms_of(HERE)[2]
    older = replace(older, recipe=older.recipe.replaced(sieve="hold"))
    run = older.run(HERE.condition, 0, SMALL.epochs, {})
    store.add(run, row(0.123, corrected=0, cpu_ms=1.0, curve=[], at_length={}))
    assert "12.3%" not in full_table([line_of(store)], networks=2)


def test_the_record_is_read_back(store, tmp_path):
    filled(store)
    items = store.those_of(leave_it_on.all_runs(SMALL, store))
    record.write_rows(tmp_path / "rows.csv", items, record.OF_OUR_RECIPE)
    again = Store(tmp_path / "again.sqlite")
    assert record.read_csv(tmp_path / "rows.csv", again) == len(items)
    assert not again.missing(leave_it_on.plan(SMALL, again))
    assert full_table([line_of(again)], 2) == full_table([line_of(store)], 2)


def test_the_goal_is_reached_at_the_first_validation_that_is_good_enough():
    seen = {"curve": [[100, 0.3], [250, 0.9], [500, 0.995]]}
    assert updates_to(seen, 0.9) == 250
    assert math.isinf(updates_to(seen, 0.999))


@pytest.mark.parametrize("cell", ["nn.RNN", "nn.GRU", "nn.LSTM"])
def test_a_cell_of_pytorch_learns_the_same_twice(cell, tmp_path):
    """The row is a function of its configuration; with a sieve that does nothing, the same one."""
    recipe = leave_it_on.arms_of(TableRow(Condition("first_symbol", 10), cell))[0].recipe.replaced(
        epochs=4, sizes=(500, 100, 100), learning_rate=3e-3, stop_at=None
    )
    config = RunConfig(Condition("first_symbol", 10), 0, recipe, hidden=24, cell=cell)
    first, again = (execute(config.as_json(), str(tmp_path)) for _ in range(2))
    idle = replace(config, recipe=recipe.replaced(sieve="hold", q_range=(-99.0, 99.0)))
    third = execute(idle.as_json(), str(tmp_path))
    results = [one["validation_loss"] for one in (first, again, third)]
    assert results[0] == results[1] == results[2] < math.log(8)
    assert first["updates"] == 200
    assert third["corrected"] == 0


def test_a_small_study_runs_and_goes_on_from_its_record(tmp_path):
    words = ["reproduce", "leave-it-on", "--tasks", "series UnitTest", "--lengths", "24",
             "--networks", "1",
             "--epochs", "2", "--jobs", "1", "--arms", RECOMMENDED]  # fmt: skip
    first, second = tmp_path / "first", tmp_path / "second"
    assert CliRunner().invoke(app, [*words, "--folder", str(first)]).exit_code == 0
    written = first / "results" / "leave-it-on.csv"
    with written.open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["sieve"], row["task"]) for row in rows] == [(RECOMMENDED, "series UnitTest")]
    assert (first / "results" / "leave-it-on.png").stat().st_size > 5_000
    assert (
        "| data sets | auto | slow Q |"
        in (first / "results" / "leave-it-on-verdicts.md").read_text()
    )
    more = ["--folder", str(second), "--from-record", str(written), "--write-only"]
    assert CliRunner().invoke(app, [*words, *more]).exit_code == 0
    assert (second / "results" / "leave-it-on.csv").read_text() == written.read_text()
