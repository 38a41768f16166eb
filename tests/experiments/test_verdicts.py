"""Verdict against outcome: the verdict is the judgement's, and a table of few rows is written."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import row, run

from gradsieve.experiments import verdicts
from gradsieve.experiments.verdicts import IN_RANGE, UNKNOWN, VANISHED, verdict_on
from gradsieve.judgement import at_a_guess
from gradsieve.sieve import Sieve

ORDER = ("temporal_order", 100)


def made(network, accuracy, Q, *, where=ORDER, arm="usual way", sieve="off", cell="tanh"):
    config = replace(run(network, where=where, arm=arm, sieve=sieve), cell=cell)
    return config, row(accuracy, final_Q=Q)


def table_of(items):
    """The cells of each line of the table of these runs, below its head."""
    known, _ = verdicts.outcomes(items)
    lines = verdicts.verdict_table(known).splitlines()[2:]
    return [line.strip("| ").split(" | ") for line in lines]


@given(st.floats(-30, 30))
def test_a_verdict_is_in_range_exactly_where_the_default_policy_would_not_correct(Q):
    signs = {0: IN_RANGE, 1: VANISHED, -1: verdicts.EXPLODED}
    assert verdict_on(Q) == signs[Sieve().at_work().wanted(Q)]


def test_networks_are_grouped_by_rows_sieve_measure_and_verdict():
    low, high = Sieve().range
    told = table_of(
        [
            made(0, 0.998, 0.0),
            made(1, 0.99, high),  # 99 % is not yet above it
            made(2, 0.26, high + 0.1),
            made(3, 0.26, low - 0.1, sieve="skip"),
            made(4, 0.995, high + 1, sieve="auto"),
            made(5, 0.3, None),  # no update had a finite Q
        ]
    )
    assert told == [
        ["drawn tasks", "auto", "slow Q", VANISHED, "1", "1 of 1 (100%)", "0 of 1 (0%)", "99.5%"],
        ["drawn tasks", "none", "Q of Eq. 14", IN_RANGE, "2", "1 of 2 (50%)", "0 of 2 (0%)",
         "99.4%"],
        ["drawn tasks", "none", "Q of Eq. 14", VANISHED, "1", "0 of 1 (0%)", "1 of 1 (100%)",
         "26.0%"],
        ["drawn tasks", "none", "Q of Eq. 14", UNKNOWN, "1", "0 of 1 (0%)", "0 of 1 (0%)",
         "30.0%"],
        ["drawn tasks", "skip", "Q of Eq. 14", "exploded", "1", "0 of 1 (0%)", "1 of 1 (100%)",
         "26.0%"],
    ]  # fmt: skip


def test_a_data_set_is_solved_within_a_point_of_the_best_arms_mean():
    pytest.importorskip("sklearn")
    where = ("digits", 64)
    items = [
        made(0, 0.90, 0.0, where=where),
        made(1, 0.94, 0.0, where=where),
        made(0, 0.95, 0.0, where=where, arm="recommended", sieve="auto"),
        made(1, 0.97, 0.0, where=where, arm="recommended", sieve="auto"),
        made(1000, 0.99, 0.0, where=where),  # a search decides no best mean
    ]
    solved = {line[1]: line[5] for line in table_of(items)}
    assert solved == {"auto": "2 of 2 (100%)", "none": "1 of 3 (33%)"}
    assert table_of(items[-1:]) == []
    assert "1 of data sets" in verdicts.outcomes(items[-1:])[1]


def test_a_guess_is_told_by_the_sequences_that_the_test_part_has():
    pytest.importorskip("sklearn")
    ((*_, guessing, _),) = table_of([made(0, 0.12, 0.0, where=("digits", 64))])
    assert at_a_guess(0.12, 0.073, 300)
    assert not at_a_guess(0.12, 0.073, 2000)  # of a drawn task
    assert guessing == "1 of 1 (100%)"


@pytest.mark.parametrize(
    ("good", "bad", "word"),
    [(0.999, 0.3, "more often than"), (0.3, 0.999, "less often than"), (0.3, 0.3, "as often as")],
)
def test_the_finding_follows_the_rows(good, bad, word):
    known, _ = verdicts.outcomes([made(0, good, 0.0), made(1, bad, 5.0)])
    assert f"*in range* are solved {word} those that ended *vanished*" in verdicts.finding(known)


def test_two_measures_are_never_compared_with_each_other():
    known, _ = verdicts.outcomes([made(0, 0.999, 0.0, sieve="auto"), made(1, 0.3, 5.0)])
    assert verdicts.finding(known).count("compared with nothing") == 2


def test_cells_of_pytorch_are_left_out_and_said_to_be(tmp_path):
    items = [made(0, 0.999, 0.0), made(0, 0.3, None, cell="nn.GRU")]
    verdicts.write("study", items, tmp_path)
    text = (tmp_path / "study-verdicts.md").read_text()
    assert "Left out are networks: 1 of PyTorch's cells" in text
    assert "1 of 1 (100%)" in text


def test_a_record_without_rows_says_so(tmp_path):
    verdicts.write("study", [], tmp_path)
    assert "No network is run yet." in (tmp_path / "study-verdicts.md").read_text()
