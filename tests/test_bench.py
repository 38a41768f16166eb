"""The benchmark: its contenders do the same work, and its numbers are what they say."""

import dataclasses
import json
import os

import numpy as np
import pytest
from typer.testing import CliRunner

import gradsieve as gs
from gradsieve.bench import accuracy
from gradsieve.bench.accuracy import Attempt, Drawn, Way, race_core, race_torch, search
from gradsieve.bench.matrix import (
    Row,
    contenders,
    growth_sizes,
    matrix_sizes,
    measure_row,
    measure_rows,
)
from gradsieve.bench.page import Findings, page
from gradsieve.bench.timing import Timing, take_turns
from gradsieve.bench.workload import GATES, Dimensions, make_workload
from gradsieve.cli import app
from gradsieve.training.data import AnyLength

SMALL = Dimensions("tanh", 12, 3, 8)


def test_ratios_are_formed_turn_by_turn():
    slow, fast = Timing((2.0, 9.0, 4.0)), Timing((1.0, 3.0, 1.0))
    assert slow.ratio_to(fast) == 3.0  # of 2, 3 and 4
    assert fast.share_of([1.0, 1.0, 4.0], 0.5) == 1 / 6  # of 1/2, 1/6 and 1/8


@pytest.mark.parametrize(
    ("seconds", "fastest"),
    [(13.0, 2.0), (0.0, 5.0)],  # all three calls; one, which was a long one
)
def test_a_turn_takes_the_fastest_call_of_each_step(seconds, fastest):
    ticks = iter([0.0, 5.0, 10.0, 12.0, 20.0, 27.0])  # calls of 5, 2 and 7 seconds
    taken = take_turns({"step": lambda: None}, 1, seconds, clock=lambda: next(ticks))
    assert taken == {"step": Timing((fastest,))}


def test_the_matrix_has_three_cells_of_six_sizes_and_the_growth_of_each_dimension():
    assert len(matrix_sizes()) == len(set(matrix_sizes())) == 18
    for cell in GATES:
        mine = [size for size in growth_sizes() if size.cell == cell]
        for name in ("hidden", "batch", "length"):
            assert len({getattr(size, name) for size in mine}) >= 5


def test_operations_are_those_of_the_products():
    size = Dimensions("GRU", 100, 10, 50)
    forward = 2 * 50 * 10 * 3 * 100 * (100 + 6)
    assert size.operations(inputs=6) == 2 * forward + 2 * 50 * 10 * 3 * 100 * 100


@pytest.mark.parametrize("cell", GATES)
def test_every_contender_trains(cell):
    steps = contenders(make_workload(dataclasses.replace(SMALL, cell=cell)))
    assert {"PyTorch plain", "PyTorch judged", "PyTorch corrected"} <= set(steps)
    assert ("core corrected" in steps) == (cell == "tanh")
    for step in steps.values():
        step()
        step()


def test_a_judged_core_step_stays_plain_and_a_corrected_one_is_corrected():
    from gradsieve.bench.own_steps import own_steps

    workload = make_workload(SMALL)
    steps = own_steps(workload)
    for _ in range(3):
        plain, judged, corrected = (steps[f"core {x}"]() for x in ("plain", "judged", "corrected"))
        assert judged.verdict.keep
        assert plain.loss == judged.loss
        assert "corrected" in str(corrected.verdict.reason)


def test_a_row_measures_its_share_of_the_peak_and_comes_back_from_its_json():
    row = measure_row(Dimensions("tanh", 64, 10, 50), 1, turns=2, seconds=0.002, others=False)
    assert not any(name.startswith(("PyTorch", "JAX")) for name in row.timings)
    assert 0 < row.share() < 1
    assert row.times("core plain", "core corrected") > 1
    assert row.times("core plain", "nobody") is None
    back = Row.from_dict(json.loads(json.dumps(row.as_dict())))
    assert back.size == row.size
    assert back.share() == pytest.approx(row.share(), rel=0.01)


def outcome(**changed):
    usual = Attempt("temporal_order", 200, "gradsieve", "the default", 0, 4.0, 4.0, 2000, 0.995)
    return dataclasses.replace(usual, **changed)


def test_the_page_shows_ratios_and_seconds(tmp_path):
    timings = {"PyTorch plain": Timing((6.0, 6.0)), "core plain": Timing((1.0, 2.0))}
    rows = [Row(SMALL, 1, timings)]
    never = outcome(way="another", seconds=None, spent=60.0, accuracy=0.4)
    found = Findings(rows, [], [outcome(), outcome(seed=1, seconds=8.0), never])
    text = page(found)
    assert "| tanh H=12 B=3 T=8 | 6000.00 ms | – | 4.50 |" in text
    assert "| temporal_order, T=200 | the default | 6.0 s | 2 of 2 | 4.0 s | 100% |" in text
    assert "| temporal_order, T=200 | another | – | 0 of 1 | 60.0 s | 40% |" in text
    found.write(tmp_path / "bench.json")
    assert Findings.read(tmp_path / "bench.json") == found
    assert (tmp_path / "bench.md").read_text() == text
    assert (tmp_path / "bench.png").stat().st_size > 10_000
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(gs.GradsieveError, match="holds no measurement"):
        Findings.read(tmp_path / "other.json")


@pytest.fixture(scope="module")
def short():
    """A task that is solved in a few hundred updates."""
    return Drawn.of(gs.tasks.temporal_order(length=10), seed=0)


def test_gradsieve_races_with_its_curriculum(short):
    assert isinstance(short, AnyLength)
    assert short.of_length(5) == gs.tasks.temporal_order(length=5)


def test_contestants_see_the_same_sequences_and_stop_when_they_have_solved_the_task(short):
    assert short.data() is short.sequences
    own = race_core(short, cap=20.0)
    other = race_torch(Way("GRU", "gst.init_", 3e-3), short, cap=20.0)
    for found in (own, other):
        assert found.seconds == found.spent > 0
        assert found.accuracy > 0.99
        assert found.updates % 250 == 0
    assert (own.contestant, other.contestant) == ("gradsieve", "nn.GRU")


def test_a_contestant_whose_time_is_over_has_not_solved_the_task(short):
    longer = Drawn.of(gs.tasks.temporal_order(length=60), seed=0)
    for found in (race_core(longer, cap=0.0), race_torch(Way("RNN", "PyTorch", 1e-9), short, 0.0)):
        assert found.seconds is None
        assert found.updates == 250


def test_the_search_takes_the_way_that_solves_the_task_first(short, monkeypatch):
    caps = []

    def race(way, drawn, cap):
        caps.append(cap)
        solved = way.start == "gst.init_" and way.rate == 1e-3
        return outcome(seconds=5.0 if solved else None, spent=5.0 if solved else cap)

    monkeypatch.setattr(accuracy, "race_torch", race)
    assert search("RNN", short, 60.0) == Way("RNN", "gst.init_", 1e-3)
    assert caps == [60.0] * 5 + [5.0]
    monkeypatch.setattr(
        accuracy, "race_torch", lambda way, drawn, cap: outcome(seconds=None, accuracy=way.rate)
    )
    assert search("GRU", short, 60.0).rate == 3e-3


def test_rows_are_measured_in_a_process_of_its_own():
    """The affinity and the threads of this process stay as they are."""
    sizes = [SMALL]
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    rows = list(measure_rows(sizes, 1, turns=1, seconds=0.0, others=False))
    assert [row.size for row in rows] == sizes
    assert np.isfinite(rows[0].timings["core plain"].median)
    if before is not None:
        assert os.sched_getaffinity(0) == before


def test_the_command_refuses_an_unknown_task():
    result = CliRunner().invoke(app, ["bench", "--time-to-accuracy", "--task", "nothing"])
    assert result.exit_code != 0
