"""Advice for a run that did not solve its task.

Settings are named as `gradsieve.recipe` names them; on the command line `clip=1` is `--clip 1`.
"""

from __future__ import annotations

import statistics

from gradsieve import tasks
from gradsieve.judgement import at_a_guess
from gradsieve.report.runs import RecordedRun

SOLVED = 0.99  # the accuracy at which the paper's protocol stops
BROKEN = 0.01  # share of updates that were not finite
LATE = 0.9  # a best validation after this share of the run: it was still improving
CORRECTING = ("auto", "hold", "steer")


def solved(run: RecordedRun) -> bool:
    """Whether the run reached the accuracy that counts as solved."""
    return run.accuracy is not None and run.accuracy >= SOLVED


def stuck(run: RecordedRun) -> bool:
    """Whether the run is no better than a constant guess."""
    if run.accuracy is None or run.chance is None:
        return False
    return at_a_guess(run.accuracy, run.chance, run.recipe.budget.sizes[2])


def advice(run: RecordedRun) -> str:
    """The advice for a run; empty for a run that solved its task or is not finished."""
    if run.result is None or run.accuracy is None or run.chance is None or solved(run):
        return ""
    if _share_not_finite(run) > BROKEN:
        return "bound the steps: clip=1, or a third of learning_rate"
    side = _side(run)
    if side > 0:
        return _against_vanishing(run)
    if side < 0:
        return (
            "bound the steps: clip=1" if run.recipe.optimiser.clip is None else _smaller_steps(run)
        )
    if _improving(run):
        return "more epochs: the accuracy was still rising at the end"
    if not stuck(run):
        return "more epochs with a rate that falls (cool_down=1), or more hidden units"
    return (
        "another learning_rate (a third, or three times), more epochs or more hidden units: the "
        "gradient reaches far enough, so reach is not what is missing"
    )


def _against_vanishing(run: RecordedRun) -> str:
    sieve = run.recipe.sieve
    if sieve is None or sieve.policy not in CORRECTING:
        return "the sieve that corrects updates (sieve=auto): the far gradient has vanished"
    start = "" if run.recipe.start.recurrent == "identity" else ", start=identity"
    staged = ", short sequences first (stages=0.2:0.1,0.5:0.2)" if run.task in tasks.NAMES else ""
    return (
        f"{_smaller_steps(run)}{start}{staged}: steps this large lose more reach than the "
        "corrections win back"
    )


def _smaller_steps(run: RecordedRun) -> str:
    optimiser, clip = run.recipe.optimiser, run.recipe.optimiser.clip
    if isinstance(clip, int | float):
        return f"a third of the clipping threshold (clip={clip / 3:.2g})"
    return f"a third of the rate (learning_rate={optimiser.learning_rate / 3:.2g})"


def _side(run: RecordedRun) -> int:
    """+1 where the far gradient had vanished in the last half of the run, −1 exploded, else 0."""
    values = [value for value in run.column(run.measure) if value is not None]
    if not values or run.q_range is None:
        return 0
    typical = statistics.median(values[len(values) // 2 :])
    low, high = run.q_range
    return 1 if typical > high else -1 if typical < low else 0


def _share_not_finite(run: RecordedRun) -> float:
    broken = sum(value for value in run.column("nonfinite") if value is not None)
    return broken / max(1.0, run.last("updates") or 0.0)


def _improving(run: RecordedRun) -> bool:
    best, last = (run.result or {}).get("best_epoch"), run.last("epoch")
    return isinstance(best, int) and last is not None and best > LATE * last and not stuck(run)
