"""The committed record is what the program computes, on the instruction set it was made with."""

import csv
import json
from pathlib import Path

import pytest

from gradsieve.experiments.config import REPORTED, RunConfig
from gradsieve.experiments.execute import execute
from gradsieve.kernel import isa

RESULTS = Path(__file__).parents[2] / "results"


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
