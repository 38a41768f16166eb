"""Advice names a setting that the run does not have yet, and a solved run gets none."""

from __future__ import annotations

from typing import Any

import pytest
from made_runs import recorded, settings

from gradsieve.report.advice import advice
from gradsieve.report.runs import RecordedRun


def run_of(
    accuracy: float, slow_Q: float, best_epoch: int = 1, nonfinite: int = 0, **changed: Any
) -> RecordedRun:
    records = [
        {"epoch": epoch, "updates": 50 * epoch, "slow_Q": slow_Q, "nonfinite": nonfinite}
        for epoch in range(1, 11)
    ]
    result = {"test_accuracy": accuracy, "best_epoch": best_epoch}
    return recorded(settings(**changed), records, result)


@pytest.mark.parametrize("policy", ["off", "skip", "select"])
@pytest.mark.parametrize("accuracy", [0.26, 0.6])
def test_a_vanished_gradient_that_nothing_corrects_asks_for_the_sieve(
    policy: str, accuracy: float
) -> None:
    assert "sieve=auto" in advice(run_of(accuracy, 4.0, sieve=policy))


@pytest.mark.parametrize("policy", ["auto", "hold", "steer"])
def test_a_corrected_gradient_that_stays_vanished_asks_for_smaller_steps(policy: str) -> None:
    said = advice(run_of(0.26, 4.0, sieve=policy, clip=0.9))
    assert "clip=0.3" in said
    assert "start=identity" in said
    assert "sieve=" not in said
    assert "learning_rate=0.001" in advice(run_of(0.26, 4.0, sieve=policy, learning_rate=3e-3))
    assert "identity" not in advice(run_of(0.26, 4.0, sieve=policy, start="identity"))


def test_short_sequences_are_advised_only_where_the_task_can_be_drawn_at_any_length() -> None:
    assert "stages=" in advice(run_of(0.26, 4.0, sieve="auto"))
    assert "stages=" not in advice(run_of(0.26, 4.0, sieve="auto", task="gestures"))


def test_an_exploded_gradient_asks_for_bounded_steps_and_then_for_smaller_ones() -> None:
    assert "clip=1" in advice(run_of(0.26, -5.0, sieve="auto"))
    assert "clip=0.33" in advice(run_of(0.26, -5.0, sieve="auto", clip=1.0))
    assert "clip=1" in advice(run_of(0.26, 0.0, nonfinite=20, sieve="auto"))


def test_a_gradient_that_reaches_is_not_blamed() -> None:
    said = advice(run_of(0.26, 0.3, sieve="auto"))
    assert "reach is not what is missing" in said
    assert "sieve=" not in said


def test_a_run_that_was_still_rising_asks_for_epochs() -> None:
    assert advice(run_of(0.6, 0.3, best_epoch=10)).startswith("more epochs: the accuracy was still")
    assert "cool_down=1" in advice(run_of(0.6, 0.3, best_epoch=3))


def test_a_solved_or_unfinished_run_gets_none() -> None:
    assert advice(run_of(0.995, 4.0)) == ""
    assert advice(recorded(settings(), [{"epoch": 1, "accuracy": 0.25, "slow_Q": 9.0}])) == ""
