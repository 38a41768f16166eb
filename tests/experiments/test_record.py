"""The committed record is what the program computes, on the instruction set it was made with."""

import csv
import json
from pathlib import Path

import pytest

from gradsieve.experiments.config import REPORTED, RunConfig
from gradsieve.experiments.execute import execute
from gradsieve.kernel import isa

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
IN_README = (
    "rms+clip",
    "identity+rms+clip",
    "stages+rms+clip",
    "bent+growth+wide+rms+clip",
    "identity+bent+growth+wide+rms+clip",
)


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
        assert (config.task, config.label) == (row["task"], row["sieve"])
        assert 0 <= float(row["test_accuracy"]) <= 1


def cells_of(line):
    return [part.strip() for part in line.strip().strip("|").split("|")]


def test_the_readme_shows_what_the_record_says_of_hold():
    head, _, *recorded = (RESULTS / "hold.md").read_text().splitlines()
    told = [line.strip() for line in (ROOT / "README.md").read_text().splitlines()]
    first = told.index(head) + 2
    shown = told[first : told.index("", first)]
    assert shown == [line for line in recorded if cells_of(line)[2] in IN_README]


def test_the_readme_shows_the_means_of_table_1_that_the_record_has():
    tasks = {
        "temporal order": "temporal_order",
        "3-bit temporal order": "temporal_order_3bit",
        "adding": "adding",
        "multiplication": "multiplication",
    }
    arms = ("off", "frozen", "full", "clip")
    told = [line.strip() for line in (ROOT / "README.md").read_text().splitlines()]
    lines = [line for line in told if line.startswith("|") and cells_of(line)[2:3] == ["off"]]
    first = told.index(lines[0]) + 2
    shown = {}
    for line in told[first : told.index("", first)]:
        task, length, *means = cells_of(line)
        shown[tasks[task.split(" (")[0]], length] = [mean.split(" (")[0] for mean in means]
    expected, recorded = {}, rows()
    for cell in shown:
        for arm in arms:
            own = [
                float(row["test_accuracy"])
                for row in recorded
                if (row["task"], row["length"], row["sieve"]) == (*cell, arm)
            ]
            assert len(own) == len(REPORTED)
            expected.setdefault(cell, []).append(f"{100 * sum(own) / len(own):.1f} %")
    assert len(shown) == 8
    assert shown == expected
