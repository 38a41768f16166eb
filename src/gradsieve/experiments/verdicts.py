"""Verdict against outcome: the gradient of a record's networks at the end, and what they learned.

The verdict is that of `judgement.judge` on `final_Q` of a row and the range of the default policy,
without a loss. `final_Q` is a mean over the last interval between two validations. It is of the Q
that the run's policy measures: slow Q for `auto` and `hold`; Eq. 14's Q for the other policies and
where there is no sieve. These are two measures, so the table keeps them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from gradsieve.experiments.config import CORE, REPORTED, Condition, RunConfig
from gradsieve.experiments.record import Items
from gradsieve.files import write_atomically
from gradsieve.judgement import LayerReading, Symptom, at_a_guess, judge
from gradsieve.sieve import Sieve
from gradsieve.text import table
from gradsieve.training.data import OwnSequences

DRAWN, DATA = "drawn tasks", "data sets"
IN_RANGE, VANISHED, EXPLODED, UNKNOWN = "in range", "vanished", "exploded", "no finite Q"
VERDICTS = (IN_RANGE, VANISHED, EXPLODED, UNKNOWN)
WORDS = {
    Symptom.HEALTHY: IN_RANGE,
    Symptom.VANISHING: VANISHED,
    Symptom.EXPLODING: EXPLODED,
}
MEASURES = {"slow Q": "slow Q", "Q": "Q of Eq. 14"}
GOAL, POINT = 0.99, 0.01
HEAD = (
    "rows", "sieve", "judged by", "at the end", "networks", "solved", "at a guess",
    "mean accuracy",
)  # fmt: skip


@dataclass(frozen=True)
class JudgedNetwork:
    """One network: the verdict on its gradient at the end, and what it learned."""

    kind: str  # of its row
    sieve: str
    measure: str
    verdict: str
    solved: bool
    guessing: bool
    accuracy: float


def verdict_on(Q: float | None) -> str:
    """The verdict on a Q by the default policy's range.

    >>> [verdict_on(Q) for Q in (0.3, 1.6, -2.1, None)]
    ['in range', 'vanished', 'exploded', 'no finite Q']
    """
    if Q is None:
        return UNKNOWN
    (symptom,) = judge([LayerReading(Q, reach=0, longest=0)], Sieve().range).symptoms
    return WORDS[symptom]


def outcomes(items: Items) -> tuple[list[JudgedNetwork], str]:
    """The networks that can be judged, and a sentence on those that cannot."""
    items = list(items)
    judged = [(config, row) for config, row in items if config.cell == CORE]
    best = _best_means(judged)
    known = [
        _outcome(config, row, best.get(config.condition))
        for config, row in judged
        if not _is_data(config.condition) or config.condition in best
    ]
    left_out = _sentences(
        (len(items) - len(judged), "of PyTorch's cells: their rows have no Q"),
        (len(judged) - len(known), "of data sets: only the search of their row is run"),
    )
    return known, left_out


def _outcome(config: RunConfig, row: dict[str, Any], best: float | None) -> JudgedNetwork:
    sieve, accuracy = config.recipe.sieve, row["test_accuracy"]
    is_data = _is_data(config.condition)
    guess, sequences = _guess(config.condition)
    solved = accuracy > GOAL
    if is_data and best is not None:
        solved = accuracy >= best - POINT
    return JudgedNetwork(
        kind=DATA if is_data else DRAWN,
        sieve="none" if sieve is None else sieve.policy,
        measure=MEASURES["Q" if sieve is None else sieve.at_work().measure],
        verdict=verdict_on(row["final_Q"]),
        solved=solved,
        guessing=at_a_guess(accuracy, guess, sequences or config.recipe.budget.sizes[2]),
        accuracy=accuracy,
    )


def _best_means(items: Items) -> dict[Condition, float]:
    """Of each row, the mean accuracy of its best arm over the reported networks."""
    found: dict[Condition, dict[str, list[float]]] = {}
    for config, row in items:
        if config.network in REPORTED:
            arms = found.setdefault(config.condition, {})
            arms.setdefault(config.arm, []).append(row["test_accuracy"])
    return {place: max(map(fmean, arms.values())) for place, arms in found.items()}


@cache
def _is_data(condition: Condition) -> bool:
    return isinstance(condition.problem(), OwnSequences)


@cache
def _guess(condition: Condition) -> tuple[float, int | None]:
    """The score of a constant guess, and how many test sequences a data set has."""
    problem = condition.problem()
    sequences = len(problem.data().test) if isinstance(problem, OwnSequences) else None
    return problem.constant_guess, sequences


def verdict_table(known: Sequence[JudgedNetwork]) -> str:
    """A line for each kind of row, sieve and verdict that there is."""
    groups = _grouped(known, lambda one: (one.kind, one.sieve, one.measure, one.verdict))
    order = sorted(
        groups, key=lambda group: (group[0] != DRAWN, *group[1:3], VERDICTS.index(group[3]))
    )
    return table(HEAD, [[*group, *_told(groups[group])] for group in order])


def _told(group: Sequence[JudgedNetwork]) -> list[str]:
    return [
        str(len(group)),
        _share([one.solved for one in group]),
        _share([one.guessing for one in group]),
        f"{fmean(one.accuracy for one in group):.1%}",
    ]


def finding(known: Sequence[JudgedNetwork]) -> str:
    """Of each kind of row and measure, how many of each verdict are solved."""
    groups = _grouped(known, lambda one: (one.kind, one.measure))
    order = sorted(groups, key=lambda group: (group[0] != DRAWN, group[1] != MEASURES["slow Q"]))
    return "\n".join(_compared(kind, measure, groups[kind, measure]) for kind, measure in order)


def _compared(kind: str, measure: str, group: Sequence[JudgedNetwork]) -> str:
    by_verdict = _grouped(group, lambda one: (one.verdict,))
    solved = {
        name: [one.solved for one in by_verdict[(name,)]]
        for name in VERDICTS
        if (name,) in by_verdict
    }
    if len(solved) == 1:
        ((name, own),) = solved.items()
        return (
            f"On {kind}, by {measure}, every network ended with the verdict *{name}*"
            f" ({_share(own)} are solved), so the verdict is compared with nothing."
        )
    told = ", ".join(f"{_share(own)} *{name}*" for name, own in solved.items())
    if IN_RANGE not in solved or VANISHED not in solved:
        return f"On {kind}, by {measure}, these networks are solved: {told}."
    good, bad = fmean(solved[IN_RANGE]), fmean(solved[VANISHED])
    word = "more often than" if good > bad else "less often than" if good < bad else "as often as"
    return (
        f"On {kind}, by {measure}, networks that ended *in range* are solved {word} those that"
        f" ended *vanished*: {told}."
    )


def _grouped(
    known: Iterable[JudgedNetwork], group: Callable[[JudgedNetwork], tuple[str, ...]]
) -> dict[tuple[str, ...], list[JudgedNetwork]]:
    groups: dict[tuple[str, ...], list[JudgedNetwork]] = {}
    for one in known:
        groups.setdefault(group(one), []).append(one)
    return groups


def _share(values: Sequence[bool]) -> str:
    return f"{sum(values)} of {len(values)} ({fmean(values):.0%})"


def _sentences(*left_out: tuple[int, str]) -> str:
    told = "; ".join(f"{count} {why}" for count, why in left_out if count)
    return f" Left out are networks: {told}." if told else ""


def write(name: str, items: Items, output: Path) -> None:
    """Write the table of these runs, its caption and its finding."""
    known, left_out = outcomes(items)
    low, high = Sieve().range
    caption = (
        f"All networks of `{name}.csv`, those of searches too. The verdict at the end is by the"
        f" default policy's range, {low:g} to {high:g}, of the Q in the column `final_Q`, a mean"
        " over the last interval between two validations. That is slow Q with `auto`, and Eq. 14's"
        " Q with `skip` or without a sieve; `watch`, `diagnose` and the report judge by slow"
        " Q. With a loss, `watch` and `diagnose` call a network *learned* whatever its Q is; a row"
        " has no loss of a constant guess, so here its Q counts.\n\n"
        "The accuracy is that of the best weights by validation. *Solved* is above 99 % on a drawn"
        " task; on a data set it is at most a point below the mean of the row's best arm. *At a"
        " guess* is less than two points, or than four standard errors of the test part, above a"
        " constant guess: on a small test part a network can be both. A line pools different"
        f" tasks, so two lines may differ by their tasks alone.{left_out}"
    )
    told = f"{verdict_table(known)}\n{finding(known)}\n" if known else "No network is run yet.\n"
    write_atomically(
        output / f"{name}-verdicts.md", f"# {name}: verdict against outcome\n\n{caption}\n\n{told}"
    )
