"""The output of the study `leave-it-on`: a table of all rows, the same in short, and a figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from gradsieve.experiments import figures
from gradsieve.experiments.config import CORE, Condition
from gradsieve.experiments.search import Arm, Found, finished
from gradsieve.experiments.statistics import bootstrap_interval, paired_p_value
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope
from gradsieve.experiments.tables import ArmRows, said, solved
from gradsieve.files import write_atomically
from gradsieve.text import table

GOAL = 0.99
EXPLAINED = (
    "`goal` is a validation accuracy: 99 % where any network of the row gets there, otherwise the"
    " mean best of the better usual arm. Updates and CPU time are medians of the networks that"
    " reach it. `time an update` is CPU time, validations in it, in multiples of the usual way's on"
    " the same networks; other processes ran on the machine. `by chance`: the candidates of the"
    " search, each run to its end, could not be told apart, and none had left the guess."
)
NOT_RUN = "–"
HEAD = (
    "task", "T", "cell", "arm", "networks", "mean", "95 % interval", "> 99 %", "goal",
    "reach it", "updates to it", "CPU s to it", "time an update", "corrected", "p, usual way",
    "p, orthogonal", "settings",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One row so far: the networks of each arm, and the settings that its search found."""

    condition: Condition
    cell: str
    names: tuple[str, ...]
    arms: Mapping[str, ArmRows]
    found: Mapping[str, Found]

    @classmethod
    def of(
        cls, condition: Condition, cell: str, ways: Sequence[Arm], scope: Scope, store: Store
    ) -> Line:
        arms, found = {}, {}
        for way in ways:
            result = finished(store, way.leader, condition, scope.epochs, scope.networks)
            if result is None:
                continue
            found[way.name] = result
            rows = {}
            for network in range(scope.networks):
                row = store.get(way.run(condition, network, scope.epochs, result.settings))
                if row is not None:
                    rows[network] = row
            if rows:
                arms[way.name] = ArmRows(rows)
        return cls(condition, cell, tuple(way.name for way in ways), arms, found)

    def __str__(self) -> str:
        cell = "" if self.cell == CORE else f", {self.cell}"
        return f"{self.condition}{cell}"

    @property
    def usual(self) -> list[str]:
        """The usual arms that were run, the one with the better mean first."""
        known = [name for name in self.names[:2] if name in self.arms]
        return sorted(known, key=lambda name: -fmean(self.arms[name].column("test_accuracy")))

    @property
    def goal(self) -> float:
        """99 % on the validation part where any network gets there, or the usual way's best mean.

        The usual arm that is better in the mean counts.
        """
        best = {
            name: [row["validation_accuracy"] for row in arm.rows.values()]
            for name, arm in self.arms.items()
        }
        if any(value >= GOAL for values in best.values() for value in values):
            return GOAL
        usual = [fmean(best[name]) for name in self.usual]
        return max(usual, default=GOAL)


def updates_to(row: Mapping[str, Any], goal: float) -> float:
    """The updates after which a network's validation accuracy first reached the goal."""
    for updates, accuracy in row["curve"]:
        if accuracy >= goal:
            return float(updates)
    return math.inf


def full_table(lines: Sequence[Line], networks: int) -> str:
    """Every arm of every row that was begun, and the names of the other rows."""
    cells = []
    for line in (one for one in lines if one.arms):
        where = [line.condition.task, str(line.condition.length), line.cell]
        for name in line.names:
            arm = line.arms.get(name)
            told = [NOT_RUN] * 12 if arm is None else _told(line, name, arm, networks)
            cells.append([*where, name, *told])
    absent = "; ".join(str(line) for line in lines if not line.arms)
    return table(HEAD, cells) + (f"\nNot run yet: {absent}.\n" if absent else "")


def _told(line: Line, name: str, arm: ArmRows, networks: int) -> list[str]:
    values = arm.column("test_accuracy")
    low, high = bootstrap_interval(values)
    goal = line.goal
    took = {seed: updates_to(row, goal) for seed, row in arm.rows.items()}
    reached = [seed for seed, updates in took.items() if math.isfinite(updates)]
    seconds = [
        took[seed] * arm.rows[seed]["cpu_ms"] / 1000
        for seed in reached
        if arm.rows[seed]["cpu_ms"] is not None
    ]
    found = line.found[name]
    settings = said(found.settings) + (", by chance" if found.by_chance else "")
    return [
        f"{len(values)} of {networks}",
        f"**{fmean(values):.1%}**",
        f"{low:.1%} – {high:.1%}" if len(values) > 1 else NOT_RUN,
        solved(values),
        f"{goal:.1%}",
        f"{len(reached)} of {len(values)}",
        f"{median(took[seed] for seed in reached):.0f}" if reached else NOT_RUN,
        f"{median(seconds):.1f}" if seconds else NOT_RUN,
        _ratio(arm, line.arms.get(line.names[0])),
        f"{fmean(arm.column('corrected')):.1%}",
        *(_p_value(arm, line.arms.get(other)) for other in line.names[:2]),
        settings or "none searched",
    ]


def _ratio(arm: ArmRows, plain: ArmRows | None) -> str:
    """CPU time of an update in multiples of the usual way's, median of the shared networks."""
    if plain is None or plain is arm:
        return NOT_RUN if plain is None else "1"
    ratios = [
        arm.rows[seed]["cpu_ms"] / plain.rows[seed]["cpu_ms"]
        for seed in set(arm.rows) & set(plain.rows)
        if arm.rows[seed]["cpu_ms"] and plain.rows[seed]["cpu_ms"]
    ]
    return f"{median(ratios):.2f}" if ratios else NOT_RUN


def _p_value(arm: ArmRows, other: ArmRows | None) -> str:
    pair = arm.pairs(other)
    return NOT_RUN if pair is None else f"{paired_p_value(*pair):.3f}"


def short_table(lines: Sequence[Line]) -> str:
    """Of each row that has them, `recommended` against the better of the two usual arms."""
    head = ("task", "T", "cell", "recommended", "better usual arm", "difference", "p", "verdict")
    cells = []
    for line in lines:
        own = line.arms.get("recommended")
        if own is None or not line.usual:
            continue
        name = line.usual[0]
        pair = own.pairs(line.arms[name])
        if pair is None:
            continue
        values, others = pair
        difference, p = fmean(values) - fmean(others), paired_p_value(values, others)
        cells.append(
            [line.condition.task, str(line.condition.length), line.cell,
             f"{fmean(values):.1%}", f"{fmean(others):.1%}, {name}",
             f"{100 * difference:+.1f}", f"{p:.3f}", verdict(difference, p)]
        )  # fmt: skip
    return table(head, cells) if cells else "No row has two networks of both sides yet.\n"


def verdict(difference: float, p: float) -> str:
    """The verdict of the pairs in a word; "open" where there are too few of them.

    >>> verdict(0.2, 0.002), verdict(-0.2, 0.002), verdict(0.001, 1.0), verdict(0.2, 0.5)
    ('better', 'worse', 'level', 'open')
    """
    if abs(difference) <= 0.01:
        return "level"
    if p >= 0.05:
        return "open"
    return "better" if difference > 0 else "worse"


def write(name: str, lines: Sequence[Line], networks: int, output: Path) -> None:
    """Write the tables and the figure of all rows so far."""
    run = sum(len(arm.rows) for line in lines for arm in line.arms.values())
    planned = networks * sum(len(line.names) for line in lines)
    text = (
        f"# {name}\n\n{run} of {planned} networks are run; a dash is what is not run."
        f" {EXPLAINED}\n\n"
        f"## In short\n\n`recommended` against the better usual arm, in pairs; `worse` and `better`"
        " are differences of more than a point with p < 0.05 (fewer than six pairs cannot reach"
        f" it).\n\n{short_table(lines)}\n## Every arm\n\n{full_table(lines, networks)}"
    )
    write_atomically(output / f"{name}.md", text)
    write_atomically(output / f"{name}-short.md", short_table(lines))
    seen = [line for line in lines if line.arms]
    if seen:
        values = {
            str(line): {name: arm.column("test_accuracy") for name, arm in line.arms.items()}
            for line in seen
        }
        chance = {str(line): line.condition.problem().constant_guess for line in seen}
        order = list(dict.fromkeys(name for line in lines for name in line.names))
        figures.save(figures.accuracies(values, chance, order), output / f"{name}.png")
