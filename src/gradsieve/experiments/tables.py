"""The tables of a study as Markdown: the results, the paper's numbers, the missing networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.experiments.equal_time import EqualTime
from gradsieve.experiments.published import TABLE1
from gradsieve.experiments.search import MARGIN, Arm, Found, finished
from gradsieve.experiments.search import Settings as Tried
from gradsieve.experiments.statistics import bootstrap_interval, paired_p_value
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope
from gradsieve.text import table

Opponent = Callable[[str], str | None]  # the name of the arm that an arm is compared with
Searches = Mapping[tuple[Condition, str], tuple[str, Found]]  # by arm: its leader and the finding


@dataclass(frozen=True)
class ArmRows:
    """The rows of one arm in one condition, by network."""

    rows: Mapping[int, Mapping[str, Any]]

    def column(self, column: str) -> list[float]:
        return [self.rows[seed][column] for seed in sorted(self.rows)]

    def pairs(
        self, other: ArmRows | None, column: str = "test_accuracy"
    ) -> tuple[list[float], list[float]] | None:
        """A column of the networks that both have, if there are two of them or more."""
        if other is None or other is self:
            return None
        seeds = sorted(set(self.rows) & set(other.rows))
        if len(seeds) < 2:
            return None
        own, its = ([side.rows[seed][column] for seed in seeds] for side in (self, other))
        return own, its


Arms = dict[str, ArmRows]


def by_condition(configs: Sequence[RunConfig], store: Store) -> dict[Condition, Arms]:
    """The rows that a plan has so far, by condition and then by arm."""
    found: dict[Condition, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for config in configs:
        row = store.get(config)
        rows = found.setdefault(config.condition, {}).setdefault(config.arm, {})
        if row is not None:
            rows[config.network] = row
    return {
        place: {name: ArmRows(rows) for name, rows in arms.items() if rows}
        for place, arms in found.items()
    }


def column_of(found: Mapping[Condition, Arms], column: str) -> dict[str, dict[str, list[float]]]:
    """One column of every arm, by condition and arm."""
    return {
        str(place): {name: arm.column(column) for name, arm in arms.items()}
        for place, arms in found.items()
    }


def searches(
    arms: Sequence[Arm], conditions: Sequence[Condition], scope: Scope, store: Store
) -> Searches:
    """The result of each arm's search, where the search is finished."""
    known = {}
    for place in conditions:
        for arm in arms:
            found = finished(store, arm, place, scope.epochs, scope.networks)
            if found is not None and found.accuracies:
                known[place, arm.name] = (arm.leader.name, found)
    return known


def accuracy_table(
    found: Mapping[Condition, Arms],
    networks: int,
    opponents: Mapping[str, Opponent],
    known: Searches,
    column: str = "test_accuracy",
) -> str:
    """Best and mean, interval, how many above 99 %, paired tests, the paper's numbers.

    The tests are of the accuracies and of the updates that a network took, `accuracy / updates`.
    """
    tests = [f"p against {name}: accuracy / updates" for name in opponents]
    head = ["task", "T", "arm", "best", "mean", "95 % interval", "> 99 %", "median updates"]
    lines = []
    for place, arms in found.items():
        for name, arm in arms.items():
            values = arm.column(column)
            low, high = bootstrap_interval(values)
            others = [arms.get(other(name) or "") for other in opponents.values()]
            notes = _notes(place, values, networks, column)
            if (place, name) in known and known[place, name][1].by_chance:
                notes.append("its settings were chosen by chance: no candidate left the guess")
            lines.append(
                [place.task, str(place.length), name, f"{max(values):.1%}",
                 f"**{fmean(values):.1%}**", f"{low:.1%} – {high:.1%}", solved(values),
                 f"{median(arm.column('updates')):.0f}",
                 *(_tests(arm, other, column) for other in others),
                 f"{fmean(arm.column('kept')):.0%}", _published(place, name, column),
                 "; ".join(notes)]
            )  # fmt: skip
    return table([*head, *tests, "kept", "paper best / mean", "note"], lines)


def solved(values: Sequence[float]) -> str:
    return f"{sum(value > 0.99 for value in values)} of {len(values)}"


def _published(place: Condition, name: str, column: str) -> str:
    """The paper's numbers for this arm and condition, or a dash."""
    numbers = TABLE1.get((place.task, place.length), {})
    if place.convention != "author" or column != "test_accuracy" or name not in numbers:
        return "–"
    pair = numbers[name]
    return "N/A" if pair is None else f"{pair[0]:.0f} / {pair[1]:.0f}"


def _notes(place: Condition, values: Sequence[float], networks: int, column: str) -> list[str]:
    notes = []
    if len(values) < networks:
        notes.append(f"**{len(values)} of {networks} networks run**")
    floor = place.problem().constant_guess
    if column == "test_accuracy" and fmean(values) < floor + MARGIN:
        notes.append(f"at its floor (a constant guess: {floor:.1%})")
    return notes


def _tests(arm: ArmRows, other: ArmRows | None, column: str = "test_accuracy") -> str:
    """The p of a column and of the updates, on the networks that both arms have."""
    pairs = [arm.pairs(other, name) for name in (column, "updates")]
    return " / ".join(f"{paired_p_value(*pair):.3f}" for pair in pairs if pair) or "–"


def hold_table(found: Mapping[Condition, Arms], pairs: Mapping[str, str], clipping: str) -> str:
    """The effect of `hold`, an arm a line: clipping, and the arm's recipe without and with `hold`.

    Cells have the mean accuracy, the number of networks above 99 %, and the median of updates.
    """
    head = ["task", "T", "built on", clipping, "without hold", "with hold",
            "p of hold: accuracy / updates"]  # fmt: skip
    lines = [
        [place.task, str(place.length), pairs[name], in_short(arms.get(clipping)),
         in_short(arms.get(pairs[name])), f"**{in_short(arm)}**",
         _tests(arm, arms.get(pairs[name]))]
        for place, arms in found.items()
        for name, arm in arms.items()
        if name in pairs
    ]  # fmt: skip
    return table(head, lines)


def in_short(arm: ArmRows | None, with_updates: bool = True) -> str:
    """The mean accuracy, how many networks are above 99 %, and the median of the updates."""
    if arm is None:
        return "–"
    values = arm.column("test_accuracy")
    said = f"{fmean(values):.1%}, {solved(values)}"
    return said + (f", {median(arm.column('updates')):.0f}" if with_updates else "")


def summary_table(found: Mapping[Condition, Arms], names: Sequence[str]) -> str:
    """Every condition in a line: of each arm the mean accuracy and the networks above 99 %."""
    lines = [
        [place.task, str(place.length),
         *(in_short(arms.get(name), with_updates=False) for name in names)]
        for place, arms in found.items()
    ]  # fmt: skip
    return table(["task", "T", *names], lines)


def equal_time_table(arms: Sequence[EqualTime]) -> str:
    """The best accuracy on the validation set when the time of plain training is over."""
    head = ["task", "T", "arm", "cost of an update", "updates in the time", "best", "mean",
            "> 99 %"]  # fmt: skip
    lines = []
    for arm in arms:
        values = arm.accuracies
        reached = ["–", "–", "–"]  # of a study so small that nothing was validated in the time
        if values:
            reached = [f"{max(values):.1%}", f"**{fmean(values):.1%}**", solved(values)]
        place = arm.condition
        lines.append(
            [place.task, str(place.length), arm.name, f"{arm.cost:.2f}", str(arm.updates), *reached]
        )
    return (
        "In the time that plain SGD takes for all of its updates (an update of each arm timed in "
        "turns with that of SGD; accuracy on the validation set):\n\n" + table(head, lines)
    )


def search_table(known: Searches) -> str:
    """The mean validation accuracy of each candidate of a search, and the choice."""
    own = {(place, leader): found for (place, _), (leader, found) in known.items()}
    lines = []
    for (place, leader), found in own.items():
        tried = "; ".join(f"{said(one)} → {mean:.1%}" for one, mean in found.accuracies)
        chosen = f"**{said(found.settings)}**" + (", by chance" if found.by_chance else "")
        lines.append([place.task, str(place.length), leader, tried, chosen])
    return table(["task", "T", "arm", "tried → mean validation accuracy", "chosen"], lines)


def said(settings: Tried) -> str:
    """Settings in few words.

    >>> said({"clip": 1.0})
    'clip 1'
    """
    return ", ".join(f"{name} {value:g}" for name, value in settings.items())
