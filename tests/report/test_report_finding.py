"""The words follow the numbers: grouping, pairing, and what is said of them."""

from __future__ import annotations

from typing import Any

import pytest
from made_runs import epoch_record, older_settings, recorded, settings

from gradsieve.report.comparison import compare, experiments
from gradsieve.report.finding import finding
from gradsieve.report.runs import RecordedRun
from gradsieve.sieve import Sieve


def run_of(
    label: str, network: int, accuracy: float | None, epochs: int = 4, **changed: Any
) -> RecordedRun:
    records = [epoch_record(epoch, label, network, 60) for epoch in range(1, epochs + 1)]
    result = None if accuracy is None else {"test_accuracy": accuracy}
    stored = settings(label, network, **changed)
    return recorded(stored, records, result, folder=f"{label}-{network}")


def pairs(off: list[float], full: list[float]) -> list[RecordedRun]:
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
        "full (clip 1)",
    ]


def test_sieves_that_differ_are_told_apart_by_what_differs_alone() -> None:
    wide = Sieve("skip", q_range=(-2, 2))
    (experiment,) = experiments([run_of("full", 0, 0.3), run_of("full", 0, 0.9, sieve=wide)])
    assert [variant.name for variant in experiment.variants] == [
        "full (q_range none)",
        "full (q_range [-2.0, 2.0])",
    ]


def test_networks_of_other_sizes_are_another_variant() -> None:
    runs = [run_of("full", 0, 0.3), run_of("full", 0, 0.9, hidden=50)]
    (experiment,) = experiments(runs)
    names = [variant.name for variant in experiment.variants]
    assert names == ["full (hidden 100)", "full (hidden 50)"]


@pytest.mark.parametrize(
    ("setting", "default", "other"),
    [
        ("rms_decay", None, 0.999),
        ("rms_bound", None, 10.0),
        ("warmup", None, 0.01),
        ("cooldown", None, 1.0),
        ("retreat", None, 6.0),
        ("stages", [], [[20, 10]]),
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
    more = {"rms_decay": 0.999} if setting == "rms_bound" else {}

    def run(network: int, **changed: Any) -> RecordedRun:
        return recorded(older_settings("full", network, **more, **changed))

    older, same = run(0), run(1, **{setting: default})
    (experiment,) = experiments([older, same])
    assert [variant.name for variant in experiment.variants] == ["full"]
    (experiment,) = experiments([older, same, run(0, **{setting: other})])
    assert [len(variant.runs) for variant in experiment.variants] == [2, 1]


def test_short_sequences_that_came_first_are_said_and_what_is_damaged_is_left_out() -> None:
    def said(stages: Any) -> list[str]:
        stored = older_settings("off", epochs=1000, stages=stages)
        (experiment,) = experiments([recorded(stored, result={"test_accuracy": 0.9})])
        return [point for point in finding(experiment).points if "Short sequences" in point]

    (point,) = said([[20, 100], [50, 300]])
    assert "came first, in epochs: 100 over 20 steps, 300 over 50 steps;" in point
    for damaged in ([[20]], [7], "none", [["a", 2]], [[None, 1]]):
        assert said(damaged) == []


def test_a_clear_gain_is_said_to_be_one() -> None:
    off = [0.3, 0.4, 0.3, 0.5, 0.4, 0.3]
    (experiment,) = experiments(pairs(off, [value + 0.4 for value in off]))
    said = finding(experiment)
    assert said.headline == (
        "“full” scores 40.0 percentage points more than “off” on average, a difference that chance "
        "rarely makes."
    )
    # All six signs equal: 2 of 64 patterns are as far from zero.
    assert any("better on 6, worse on 0" in point and "3.1 %" in point for point in said.points)


def test_a_loss_is_said_to_be_one() -> None:
    (experiment,) = experiments(pairs([0.9] * 6, [0.5] * 6))
    assert finding(experiment).headline.startswith("“full” scores 40.0 percentage points less")


def test_few_networks_are_said_to_be_too_few() -> None:
    (experiment,) = experiments(pairs([0.3, 0.3], [0.99, 0.99]))
    assert "but 2 networks cannot tell that from chance" in finding(experiment).headline


def test_the_strongest_opponent_counts_and_choosing_the_best_sieve_is_admitted() -> None:
    runs = pairs([0.3] * 6, [0.8] * 6)
    runs += [run_of("clip", index, 0.9) for index in range(6)]
    runs += [run_of("frozen", index, 0.4) for index in range(6)]
    (experiment,) = experiments(runs)
    headline = finding(experiment).headline
    assert headline.startswith("“full”, the best of 2 sieves tried, scores 10.0")
    assert "less than" in headline
    assert "“clip”" in headline


@pytest.mark.parametrize(
    ("accuracy", "words"),
    [(0.995, "solved the task"), (0.26, "learned nothing beyond"), (0.6, "learned part of")],
)
def test_one_network_is_judged_against_a_constant_guess(accuracy: float, words: str) -> None:
    (experiment,) = experiments([run_of("full", 0, accuracy)])
    assert words in finding(experiment).headline


def test_an_unfinished_run_is_said_to_be_unfinished() -> None:
    (experiment,) = experiments([run_of("full", 0, None)])
    said = finding(experiment)
    assert "(1 of 1 runs not finished)" in said.headline
    assert "validation accuracy" in said.headline
    (experiment,) = experiments([run_of("full", 0, None, epochs=0)])
    assert finding(experiment).headline.startswith("Nothing measured yet")


@pytest.mark.parametrize("measure", ["slow_Q", "Q"])
def test_vanished_shares_are_counted_by_the_sieves_own_range(measure: str) -> None:
    records = [{"epoch": index, measure: value} for index, value in enumerate([0, 0.6, 0.6, -3])]
    stored = settings(sieve=Sieve("hold", q_range=(-2, 0.5)))
    (experiment,) = experiments([recorded(stored, records, {"test_accuracy": 0.5})])
    (point,) = finding(experiment).points
    name = measure.replace("_", " ")
    assert f"vanished ({name} above 0.5) in 50 %" in point
    assert f"exploded ({name} below −2) in 25 %" in point
    assert "1,000 times stronger" in point


def test_sign_agreement_stalls_and_what_was_not_finite_are_counted() -> None:
    pairs_seen = [(1, 2), (1, -2), (-1, -1), (None, 1), (-3, -4)]
    records = [
        {
            "epoch": index,
            "stalls": 2,
            "nonfinite": 3,
            "kept": 0.5,
            "reasons": {"IN_RANGE": 1, "VANISHED_FALLS": 1},
            "probe": {"predicted": predicted, "measured": measured},
        }
        for index, (predicted, measured) in enumerate(pairs_seen)
    ]
    (experiment,) = experiments([recorded(settings(), records, damaged_lines=7)])
    said = " ".join(finding(experiment).points)
    assert "Of 4 updates that were measured" in said
    assert "in 75 %" in said
    assert "It stalled 10 times" in said
    assert "left out 50 % of updates" in said
    assert "15 minibatches had a loss or gradient that was not finite" in said
    assert "7 damaged history lines" in said


def test_what_the_sieve_did_is_said_with_the_updates_between_which_it_did_it() -> None:
    counts = [0, 10, 48, 0]
    records = [
        {
            "epoch": index + 1,
            "updates": 100 * (index + 1),
            "reasons": {"VANISHED_CORRECTED": count, "IN_RANGE": 100 - count},
        }
        for index, count in enumerate(counts)
    ]
    (experiment,) = experiments([recorded(settings(sieve="auto"), records)])
    (point,) = finding(experiment).points
    assert "The sieve corrected 29 % of updates between 100 and 300 (reasons:" in point


def test_only_the_best_way_of_training_is_given_advice() -> None:
    (experiment,) = experiments(pairs([0.26] * 2, [0.995] * 2))
    assert finding(experiment).next == ""
    (experiment,) = experiments(pairs([0.26] * 2, [0.6, 0.995]))
    assert finding(experiment).next.startswith("What to try next: 1 of 2 with “full”: ")
