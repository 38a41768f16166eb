"""`gradsieve demo`, small: the same initial networks off and on, a table, a sentence, a report."""

import json
import re

import numpy as np
from typer.testing import CliRunner

from gradsieve.cli import app
from gradsieve.network import SRN
from gradsieve.recipes import own_data
from gradsieve.report.runs import read_run
from gradsieve.sieve import Sieve

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


def test_off_and_on_are_the_recipe_for_own_data_but_for_the_sieve(tmp_path):
    words = ["demo", *SMALL, "-o", str(tmp_path / "demo"), "--json"]
    CliRunner().invoke(app, words, catch_exceptions=False)
    off, on = (read_run(tmp_path / "demo" / f"{label}-1") for label in ("off", "on"))
    assert (off.label, off.recipe.sieve, on.recipe.sieve) == ("off", None, Sieve())
    assert off.recipe == on.recipe.replaced(sieve="off")
    budget = {"epochs", "sizes", "probe_every", "stop_at"}
    assert set(on.recipe.differing(own_data())) == budget


def test_the_demo_ends_with_a_table_a_sentence_and_how_to_open_the_report(tmp_path):
    words = ["demo", *SMALL, "-o", str(tmp_path / "demo")]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "mean" in said.stdout
    solved = r"[012] of 2 networks solved it with the sieve, [012] of 2 without\."
    assert re.search(solved, said.stdout)
    report = tmp_path / "demo" / "report.html"
    assert str(report) in said.stdout
    assert report.as_uri() in said.stdout
    assert "Off is the same recipe without the sieve" in " ".join(said.output.split())
