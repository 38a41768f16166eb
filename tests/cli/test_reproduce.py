"""`gradsieve reproduce`: a small study from nothing, its record, its status, going on from it."""

import csv
import json

import pytest
from typer.testing import CliRunner

from gradsieve.cli import app
from gradsieve.cli.reproduce import Name, with_address
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.execute import execute
from gradsieve.experiments.store import sole_writer
from gradsieve.experiments.studies import STUDIES

SMALL = ["--networks", "2", "--epochs", "2", "--tasks", "temporal_order", "--lengths", "100"]
COLUMNS = {
    "task", "length", "sieve", "seed", "test_accuracy", "validation_accuracy", "kept", "stalls",
    "updates", "seconds", "learning_rate",
}  # fmt: skip


def run(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)], catch_exceptions=False)


def test_every_study_can_be_asked_for():
    assert {*STUDIES, "all"} == set(Name)


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    assert run("table1", *SMALL, "--folder", folder).exit_code == 0
    return folder


def test_a_small_table_has_a_row_for_each_network_and_arm(small_study):
    with (small_study / "results" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) >= COLUMNS
    found = {(row["sieve"], row["seed"]) for row in rows}
    assert found == {(arm.name, seed) for arm in STUDIES["table1"].arms for seed in "01"}
    table = (small_study / "results" / "table1.md").read_text()
    assert "| temporal_order | 100 | skip (full dS) |" in table
    assert "96 / 44" in table  # what the paper says stands beside it
    assert (small_study / "results" / "table1.png").stat().st_size > 10_000


def test_a_recorded_row_computes_to_the_same_number_again(small_study, tmp_path):
    with (small_study / "results" / "runs.csv").open() as file:
        row = list(csv.DictReader(file))[-1]
    again = execute(row["config"], str(tmp_path))
    assert again["test_accuracy"] == float(row["test_accuracy"])
    assert RunConfig.from_json(row["config"]).arm == row["sieve"]


def test_status_says_how_many_runs_are_done(small_study):
    said = run("table1", *SMALL, "--folder", small_study, "--status", "--json")
    assert json.loads(said.stdout) == {"table1": {"known_runs": 10, "missing": 0}}


def test_what_there_is_can_be_written_while_another_process_computes(small_study, tmp_path):
    words = ["table1", *SMALL, "--folder", small_study, "-o", tmp_path]
    with sole_writer(small_study):
        with pytest.raises(GradsieveError, match="another process is computing a study"):
            run(*words)
        assert run(*words, "--write-only").exit_code == 0
    written, known = (folder / "runs.csv" for folder in (tmp_path, small_study / "results"))
    assert written.read_text() == known.read_text()


def test_a_study_goes_on_from_a_record(small_study, tmp_path):
    results = small_study / "results"
    known = ["--from-record", results / "runs.csv", "--from-record", results / "search.csv"]
    said = run("table1", *SMALL, "--folder", tmp_path, *known, "--status", "--json")
    assert json.loads(said.stdout)["table1"]["missing"] == 0


def test_figure1_shows_what_the_paper_says_of_the_three_variances(tmp_path):
    assert run("figure1", "--networks", 1, "--folder", tmp_path).exit_code == 0
    with (tmp_path / "results" / "figure1.csv").open() as file:
        rows = list(csv.DictReader(file))
    far = {row["variance"]: float(row["delta"]) for row in rows if row["depth"] == "99"}
    near = {row["variance"]: float(row["delta"]) for row in rows if row["depth"] == "0"}
    assert far["0.005"] < 1e-8 * near["0.005"]  # vanishes
    assert far["0.02"] > 3 * near["0.02"]  # explodes
    assert 1e-3 < far["0.01"] / near["0.01"] < 10  # flat, next to those


def test_agreement_writes_both_estimators(tmp_path):
    words = ["--networks", 1, "--epochs", 5, "--tasks", "temporal_order", "--folder", tmp_path]
    assert run("agreement", *words).exit_code == 0
    table = (tmp_path / "results" / "agreement.md").read_text()
    assert "early" in table
    assert (tmp_path / "results" / "agreement.png").exists()


def test_figure2_draws_each_arm(tmp_path):
    assert run("figure2", "--epochs", 10, "--folder", tmp_path).exit_code == 0
    assert (tmp_path / "results" / "figure2.png").stat().st_size > 10_000


def test_events_of_every_record_reach_tensorboard(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = tmp_path / "events"
    assert run("table1", *SMALL, "--folder", tmp_path, "--tensorboard", events).exit_code == 0
    folders = sorted(events.glob("temporal_order-100/skip (full dS)-*"))
    assert len(folders) == 2
    found = EventAccumulator(str(folders[0])).Reload()
    assert len(found.Scalars("accuracy/validation")) == 1


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("table1 --ray", "table1 --ray auto"),
        ("--ray --status", "--ray auto --status"),
        ("--ray table1", "--ray auto table1"),
        ("table1 --ray local --jobs 2", "table1 --ray local --jobs 2"),
        ("--ray ray://head:10001", "--ray ray://head:10001"),
        ("table1 --ray=local", "table1 --ray=local"),
        ("table1 --status", "table1 --status"),
        ("", ""),
    ],
)
def test_ray_without_an_address_is_the_cluster_of_this_machine(words, read):
    assert with_address(words.split()) == read.split()


@pytest.mark.xdist_group("ray")  # beside a test that has a cluster, there would be one
@pytest.mark.parametrize(("said", "read"), [(["--ray"], "auto"), (["--ray", "nowhere"], "nowhere")])
def test_ray_where_there_is_no_cluster_says_how_to_have_one(tmp_path, said, read):
    with pytest.raises(GradsieveError, match=f"--ray {read}: no Ray cluster .*ray start --head"):
        run("table1", *SMALL, "--folder", tmp_path, *said)


@pytest.mark.parametrize("option", ["--tasks", "--arms"])
def test_an_unknown_task_or_arm_is_the_users_mistake(tmp_path, option):
    with pytest.raises(InvalidArgument, match=f"{option}: chess"):
        run("table1", option, "chess", "--folder", tmp_path)
