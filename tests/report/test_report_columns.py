"""A thinned history says the same as the whole one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import LAGS, epoch_record, recorded, settings

from gradsieve.report.columns import columns
from gradsieve.report.runs import RecordedRun
from gradsieve.sieve import Reason


def run_of(epochs: int) -> RecordedRun:
    records = tuple(epoch_record(epoch, "full", 0, epochs) for epoch in range(1, epochs + 1))
    return recorded(settings(), records)


def test_a_short_history_is_kept_to_six_digits() -> None:
    run = run_of(30)
    made = columns(run)
    assert made["every"] == 1
    assert made["epoch"] == list(range(1, 31))
    assert made["Q"] == pytest.approx([epoch["Q"] for epoch in run.epochs], rel=1e-5)
    assert made["probe"]["lags"] == LAGS
    assert made["probe"]["epoch"] == list(range(1, 31, 2))


@given(epochs=st.integers(1, 120), most=st.integers(1, 40))
def test_thinning_loses_no_count_no_extreme_and_no_end(epochs: int, most: int) -> None:
    run = run_of(epochs)
    made = columns(run, most, most)
    assert len(made["epoch"]) <= most
    assert made["epoch"][-1] == epochs
    assert sum(made["stalls"]) == sum(epoch["stalls"] for epoch in run.epochs)
    for reason in (Reason.IN_RANGE, Reason.VANISHED_FALLS):
        counted = sum(epoch["reasons"][reason.name] for epoch in run.epochs)
        assert sum(made["reasons"][str(reason)]) == counted
    assert min(made["Q_min"]) == pytest.approx(min(e["Q_min"] for e in run.epochs), rel=1e-5)
    assert max(made["Q_max"]) == pytest.approx(max(e["Q_max"] for e in run.epochs), rel=1e-5)
    assert made["accuracy"][-1] == pytest.approx(run.epochs[-1]["accuracy"], rel=1e-5)
    probed = [epoch["epoch"] for epoch in run.epochs if epoch["probe"]]
    assert made["probe"]["epoch"][-1] == probed[-1]
    assert len(made["probe"]["epoch"]) <= most + 1


def test_what_was_not_measured_is_none_and_stays_out_of_means() -> None:
    records = [
        {"epoch": 1, "Q": None, "probe": None},
        {"epoch": 2, "Q": 3.0, "reasons": "?", "probe": {"lags": [0, 5], "log10_norm": [-1, None]}},
        {"epoch": 3},
    ]
    made = columns(recorded(settings(), records), most_points=2)
    assert made["Q"] == [3.0, None]
    assert made["loss"] == [None, None]
    assert made["probe"]["log10_norm"] == [[-1.0, None]]
    assert made["probe"]["saturated"] == [None]


def test_a_run_without_epochs_has_empty_columns() -> None:
    made = columns(recorded(settings()))
    assert made["epoch"] == made["Q"] == made["probe"]["epoch"] == []


def test_reasons_that_version_0_1_wrote_in_words_count_with_those_of_today() -> None:
    words = ["vanished, steered back", "VANISHED_CORRECTED", "a word of no version"]
    records = [{"epoch": at, "reasons": {word: 3}} for at, word in enumerate(words)]
    counted = columns(recorded(settings(), records))["reasons"]
    assert counted == {
        str(Reason.VANISHED_CORRECTED): [3, 3, 0],
        "a word of no version": [0, 0, 3],
    }
