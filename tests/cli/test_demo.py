"""`gradsieve demo`, small: the same initial networks off and on, a table, a report."""

import json

import numpy as np
from typer.testing import CliRunner

from gradsieve.cli import app
from gradsieve.network import SRN

SMALL = ["--length", "20", "--networks", "2", "--epochs", "5"]


def test_the_demo_trains_each_network_twice_from_the_same_weights(tmp_path):
    words = ["demo", *SMALL, "-o", str(tmp_path / "demo"), "--json"]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert said.exit_code == 0
    outcome = json.loads(said.stdout)
    assert [len(outcome[label]) for label in ("off", "on")] == [2, 2]
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000
    for network in range(2):
        off, on = (
            SRN.load(tmp_path / "demo" / f"{label}-{network}" / "initial.safetensors")
            for label in ("off", "on")
        )
        assert np.array_equal(off.flat, on.flat)


def test_the_demo_ends_with_a_table_and_the_reports_path(tmp_path):
    words = ["demo", *SMALL, "-o", str(tmp_path / "demo")]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "mean" in said.stdout
    assert "report.html" in said.stdout.replace("\n", "")
