"""The committed record is what the program computes, on the instruction set it was made with."""

import csv
import itertools
import json
from pathlib import Path

import pytest

from gradsieve.experiments.beyond import summarised
from gradsieve.experiments.config import REPORTED, TASKS, RunConfig
from gradsieve.experiments.execute import execute
from gradsieve.experiments.record import read_csv
from gradsieve.experiments.store import Store
from gradsieve.experiments.studies import ARMS
from gradsieve.kernel import isa

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"


def rows():
    with (RESULTS / "runs.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_committed_row_computes_to_the_same_number_again(tmp_path):
    recorded = json.loads((RESULTS / "machine.json").read_text())["isa"]
    if isa() != recorded:
        pytest.skip(f"RECORDED WITH {recorded}, THIS MACHINE HAS {isa()}: NO ROW IS RUN AGAIN")
    quickest = min(rows(), key=lambda row: int(row["updates"]) * int(row["length"]))
    again = execute(quickest["config"], str(tmp_path))
    assert again["test_accuracy"] == float(quickest["test_accuracy"])
    assert again["updates"] == int(quickest["updates"])


def test_every_committed_row_says_what_it_was_made_with():
    for row in rows():
        config = RunConfig.from_json(row["config"])
        assert config.network in REPORTED
        assert (config.condition.task, config.arm) == (row["task"], row["sieve"])
        assert config.arm in ARMS
        assert 0 <= float(row["test_accuracy"]) <= 1


@pytest.mark.parametrize("name", ["leave-it-on", "anchors"])
def test_the_record_of_a_study_that_was_begun_can_be_gone_on_from(name, tmp_path):
    store = Store(tmp_path / "store.sqlite")
    count = read_csv(RESULTS / f"{name}.csv", store)
    items = store.items()
    assert len(items) == count
    assert {config.arm for config, _ in items} <= set(ARMS)
    assert all(0 <= row["test_accuracy"] <= 1 for _, row in items)


def start_of(row):
    return json.loads(row["config"])["recipe"]["start"]


def cells_of(line):
    return [part.strip() for part in line.strip().strip("|").split("|")]


def in_short(task, length, arm, recorded):
    """As the summary says it: the mean, and how many networks are above 99 %."""
    own = [
        float(row["test_accuracy"])
        for row in recorded
        if (row["task"], row["length"], row["sieve"]) == (task, length, arm)
    ]
    if not own:
        return "–"
    return f"{100 * sum(own) / len(own):.1f}%, {sum(a > 0.99 for a in own)} of {len(own)}"


def test_the_docs_show_the_summary_and_the_readme_no_row_that_is_not_in_it():
    summary = (RESULTS / "summary.md").read_text().splitlines()
    lines = (line.strip() for line in (ROOT / "README.md").read_text().splitlines())
    shown = [line for line in lines if line.startswith(tuple(f"| {task} |" for task in TASKS))]
    assert set(shown) <= set(summary)
    assert "{include} ../results/summary.md" in (ROOT / "docs" / "results.md").read_text()


def test_the_summary_is_what_the_rows_of_the_record_come_to():
    recorded = [row for row in rows() if float(start_of(row)["variance"]) == 0.01]
    _, _, *lines = (RESULTS / "summary.md").read_text().splitlines()
    cells = {tuple(cells_of(line)[:2]) for line in lines}
    assert cells >= set(itertools.product(TASKS, ("100", "150", "200")))
    for line in lines:
        task, length, *shown = cells_of(line)
        arms = summarised(task).values()
        assert shown == [in_short(task, length, arm, recorded) for arm in arms]
