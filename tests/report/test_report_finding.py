"""The words follow the numbers: grouping, pairing, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gradsieve.report.verdict import verdict
from made_runs import epoch_record, settings

from gradsieve.report.comparison import compare, experiments
from gradsieve.report.runs import Run


def run_of(
    label: str, network: int, accuracy: float | None, epochs: int = 4, **changed: Any
) -> Run:
    records = tuple(epoch_record(epoch, label, network, 60) for epoch in range(1, epochs + 1))
    result = None if accuracy is None else {"test_accuracy": accuracy}
    folder = Path(f"{label}-{network}")
    return Run(folder, settings(label, network, **changed), records, result, 0)


def pairs(off: list[float], full: list[float]) -> list[Run]:
    return [run_of("off", index, value) for index, value in enumerate(off)] + [
        run_of("full", index, value) for index, value in enumerate(full)
    ]


def test_networks_are_paired_by_their_initial_weights() -> None:
    runs = [run_of("off", 2, 0.5), run_of("off", 0, 0.25), run_of("full", 0, 0.75)]
    (experiment,) = experiments(runs)
    off, full = experiment.variants
    comparison = compare(full, off)
    assert comparison is not None
    assert comparison.differences == (0.5,)


def test_tasks_and_lengths_are_not_mixed() -> None:
    runs = [
        run_of("off", 0, 0.3),
        run_of("off", 0, 0.3, length=50),
        run_of("off", 0, 0.3, task="x"),
    ]
    names = [experiment.name for experiment in experiments(runs)]
    assert names == ["temporal order, T = 100", "temporal order, T = 50", "x, T = 100"]


def test_runs_of_one_label_with_other_settings_are_another_variant() -> None:
    runs = [run_of("full", 0, 0.3), run_of("full", 1, 0.3), run_of("full", 0, 0.9, clip=1.0)]
    (experiment,) = experiments(runs)
    assert [variant.name for variant in experiment.variants] == [
        "full (clip none)",
        "full (clip 1.0)",
    ]


def test_sieves_that_differ_are_told_apart_by_what_differs_alone() -> None:
    wide = {"q_range": [-2, 2], "max_change": None, "estimator": "full", "policy": "skip"}
    (experiment,) = experiments([run_of("full", 0, 0.3), run_of("full", 0, 0.9, sieve=wide)])
    assert [variant.name for variant in experiment.variants] == [
        "full (q_range [-1, 1])",
        "full (q_range [-2, 2])",
    ]


@pytest.mark.parametrize(
    ("setting", "default", "other"),
    [
        ("rms_decay", None, 0.999),
        ("rms_bound", None, 10.0),
        ("warmup", None, 0.01),
        ("cooldown", None, 1.0),
        ("retreat", None, 6.0),
        ("stages", [], [[20, 100]]),
        ("rate_by_length", 0.0, 1.0),
        ("batch_by_length", 0.0, 1.5),
        ("gain", 1.0, 0.7),
        ("recurrent", "gaussian", "identity"),
        ("input_gain", 1.0, 16.0),
        ("bias_spread", 0.0, 0.5),
    ],
)
def test_a_setting_that_an_older_run_does_not_have_is_what_it_then_was(
    setting: str, default: Any, other: Any
) -> None:
    older, same = run_of("full", 0, 0.3), run_of("full", 1, 0.3, **{setting: default})
    assert setting not in older.settings
    (experiment,) = experiments([older, same])
    assert [variant.name for variant in experiment.variants] == ["full"]
    (experiment,) = experiments([older, same, run_of("full", 0, 0.9, **{setting: other})])
    assert [len(variant.runs) for variant in experiment.variants] == [2, 1]


def test_short_sequences_that_came_first_are_said_and_what_is_damaged_is_left_out() -> None:
    (experiment,) = experiments([run_of("off", 0, 0.9, stages=[[20, 100], [50, 300]])])
    said = "Short sequences came first, in epochs: 100 over 20 steps, 300 over 50 steps;"
    assert any(said in point for point in verdict(experiment).points)
    for damaged in ([[20]], [7], "none", [["a", 2]], [[None, 1]]):
        (experiment,) = experiments([run_of("off", 0, 0.9, stages=damaged)])
        assert not any("Short sequences" in point for point in verdict(experiment).points)


def test_a_clear_gain_is_said_to_be_one() -> None:
    off = [0.3, 0.4, 0.3, 0.5, 0.4, 0.3]
    (experiment,) = experiments(pairs(off, [value + 0.4 for value in off]))
    said = verdict(experiment)
    assert said.headline == (
        "“full” scores 40.0 percentage points more than “off” on average, a difference that chance "
        "rarely makes."
    )
    # All six signs equal: 2 of 64 patterns are as far from zero.
    assert any("better on 6, worse on 0" in point and "3.1 %" in point for point in said.points)


def test_a_loss_is_said_to_be_one() -> None:
    (experiment,) = experiments(pairs([0.9] * 6, [0.5] * 6))
    assert verdict(experiment).headline.startswith("“full” scores 40.0 percentage points less")


def test_few_networks_are_said_to_be_too_few() -> None:
    (experiment,) = experiments(pairs([0.3, 0.3], [0.99, 0.99]))
    assert "but 2 networks cannot tell that from chance" in verdict(experiment).headline


def test_the_strongest_opponent_counts_and_choosing_the_best_sieve_is_admitted() -> None:
    runs = pairs([0.3] * 6, [0.8] * 6)
    runs += [run_of("clip", index, 0.9) for index in range(6)]
    runs += [run_of("frozen", index, 0.4) for index in range(6)]
    (experiment,) = experiments(runs)
    headline = verdict(experiment).headline
    assert headline.startswith("“full”, the best of 2 sieves tried, scores 10.0")
    assert "less than" in headline
    assert "“clip”" in headline


@pytest.mark.parametrize(
    ("accuracy", "words"),
    [(0.995, "solved the task"), (0.26, "learned nothing beyond"), (0.6, "learned part of")],
)
def test_one_network_is_judged_against_a_constant_guess(accuracy: float, words: str) -> None:
    (experiment,) = experiments([run_of("full", 0, accuracy)])
    assert words in verdict(experiment).headline


def test_an_unfinished_run_is_said_to_be_unfinished() -> None:
    (experiment,) = experiments([run_of("full", 0, None)])
    said = verdict(experiment)
    assert "(1 of 1 runs not finished)" in said.headline
    assert "validation accuracy" in said.headline
    (experiment,) = experiments([run_of("full", 0, None, epochs=0)])
    assert verdict(experiment).headline.startswith("Nothing measured yet")


@pytest.mark.parametrize(
    ("policy", "accuracy", "Q", "advised"),
    [
        ("hold", 0.26, 1.5, True),
        ("steer", 0.26, 1.5, True),
        ("hold", 0.9, 1.5, False),  # it learned
        ("hold", 0.26, 0.1, False),  # it has reach: something else is wrong
        ("skip", 0.26, 1.5, False),  # which does not steer
    ],
)
def test_a_steered_network_that_never_got_its_reach_is_given_advice(
    policy: str, accuracy: float, Q: float, advised: bool
) -> None:
    records = tuple({"epoch": epoch, "Q": Q} for epoch in (1, 2, 3))
    sieve = {"q_range": [-2, 0.5], "policy": policy}
    run = Run(Path("x"), settings(sieve=sieve), records, {"test_accuracy": accuracy}, 0)
    (experiment,) = experiments([run])
    (point,) = verdict(experiment).points
    assert ("In 1 network steering did not bring the gradient back" in point) == advised


def test_vanished_shares_are_counted_by_the_sieves_own_range() -> None:
    records = tuple({"epoch": index, "Q": value} for index, value in enumerate([0, 0.6, 0.6, -3]))
    sieve = {"q_range": [-2, 0.5]}
    run = Run(Path("x"), settings(sieve=sieve), records, {"test_accuracy": 0.5}, 0)
    (experiment,) = experiments([run])
    (point,) = verdict(experiment).points
    assert "vanished (Q above 0.5) in 50 %" in point
    assert "exploded (Q below −2) in 25 %" in point
    assert "1,000 times stronger" in point


def test_sign_agreement_stalls_and_what_was_not_finite_are_counted() -> None:
    pairs_seen = [(1, 2), (1, -2), (-1, -1), (None, 1), (-3, -4)]
    records = tuple(
        {
            "epoch": index,
            "stalls": 2,
            "nonfinite": 3,
            "kept": 0.5,
            "reasons": {"in range": 1, "stalled": 1},
            "probe": {"predicted": predicted, "measured": measured},
        }
        for index, (predicted, measured) in enumerate(pairs_seen)
    )
    (experiment,) = experiments([Run(Path("x"), settings(), records, None, damaged_lines=7)])
    said = " ".join(verdict(experiment).points)
    assert "Of 4 updates that were measured" in said
    assert "in 75 %" in said
    assert "it stalled 10 times" in said
    assert "kept 50.0 %" in said
    assert "15 minibatches had a loss or gradient that was not finite" in said
    assert "7 damaged history lines" in said
