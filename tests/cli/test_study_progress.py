"""The time that a study says is left."""

import io

import pytest
from rich.console import Console

from gradsieve.cli import study_progress
from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.recipe import Recipe

RUNS = [
    RunConfig(Condition("adding", 100), network, Recipe().replaced(epochs=1000))
    for network in range(2)
]


@pytest.fixture
def now(monkeypatch):
    """A clock that goes on when it is told to."""
    clock = [0.0]
    monkeypatch.setattr(study_progress.time, "monotonic", lambda: clock[0])
    return clock


def reach(folder, config, epoch):
    (folder / config.key).mkdir(exist_ok=True)
    (folder / config.key / "history.jsonl").write_text(f'{{"epoch": {epoch}, "updates": 50}}\n')


def said_after(folder, now, seconds, running):
    out = io.StringIO()
    with study_progress.StudyProgress(Console(file=out), "table1", folder) as progress:
        progress.begin(RUNS)
        for config, epoch in running.items():
            reach(folder, config, epoch)
        now[0] += seconds
        progress.watch(list(running))
    return out.getvalue()


def test_the_time_left_goes_by_what_was_computed_since_it_began(tmp_path, now):
    assert "0 of 2 runs, at most 15 min left" in said_after(tmp_path, now, 100, {RUNS[0]: 200})


def test_what_an_earlier_session_computed_took_no_time(tmp_path, now):
    reach(tmp_path, RUNS[0], 900)
    assert "0 of 2 runs, at most 35 min left" in said_after(tmp_path, now, 100, {RUNS[0]: 950})


def test_nothing_is_promised_before_anything_was_computed(tmp_path, now):
    reach(tmp_path, RUNS[0], 900)
    said = said_after(tmp_path, now, 100, {RUNS[0]: 900})
    assert "0 of 2 runs" in said
    assert "left" not in said
