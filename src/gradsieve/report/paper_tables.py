"""The tables of a study as Markdown: what was run, what the paper says, what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gradsieve import tasks
from gradsieve.experiments import search
from gradsieve.experiments.agreement import PHASES, compare
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.statistics import bootstrap_interval, paired_p_value
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope
from gradsieve.experiments.table1 import PAPER

FLOOR = 0.02  # a mean within this of the constant guess has not left the floor


@dataclass(frozen=True)
class Cell:
    """The rows of one arm on one task of one length, by network."""

    rows: Mapping[int, Mapping[str, Any]]

    def accuracies(self, column: str = "test_accuracy") -> list[float]:
        return [self.rows[seed][column] for seed in sorted(self.rows)]


Arms = dict[str, Cell]


def cells(configs: Sequence[RunConfig], store: Store) -> dict[tuple[str, int], Arms]:
    """What there is of a plan, by task and length and then by label."""
    found: dict[tuple[str, int], dict[str, dict[int, Mapping[str, Any]]]] = {}
    for config in configs:
        row = store.get(config)
        arms = found.setdefault((config.task, config.length), {})
        rows = arms.setdefault(config.label, {})
        if row is not None:
            rows[config.network] = row
    return {
        place: {label: Cell(rows) for label, rows in arms.items() if rows}
        for place, arms in found.items()
    }


def accuracy_table(
    found: Mapping[tuple[str, int], Arms],
    networks: int,
    against: str,
    column: str = "test_accuracy",
    paper: Mapping[tuple[str, int], Mapping[str, tuple[float, float] | None]] = PAPER,
) -> str:
    """Best and mean, interval, how many above 99 %, the paired test, the paper's numbers."""
    lines = [
        f"| task | T | sieve | best | mean | 95 % interval | > 99 % | p against {against} | kept | "
        "paper best / mean | note |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (task, length), arms in found.items():
        floor = tasks.by_name(task, length=length).constant_guess
        for label, cell in arms.items():
            lines.append(
                _accuracy_line(
                    task,
                    length,
                    label,
                    cell,
                    arms.get(against),
                    floor,
                    networks,
                    column,
                    paper.get((task, length), {}),
                )
            )
    return "\n".join(lines) + "\n"


def _accuracy_line(
    task: str,
    length: int,
    label: str,
    cell: Cell,
    other: Cell | None,
    floor: float,
    networks: int,
    column: str,
    paper: Mapping[str, tuple[float, float] | None],
) -> str:
    values = cell.accuracies(column)
    mean = sum(values) / len(values)
    low, high = bootstrap_interval(values)
    notes = []
    if len(values) < networks:
        notes.append(f"**{len(values)} of {networks} networks run**")
    if column == "test_accuracy" and mean < floor + FLOOR:
        notes.append(f"at its floor (a constant guess: {floor:.1%})")
    published = "–"
    if label in paper:
        numbers = paper[label]
        published = "N/A" if numbers is None else f"{numbers[0]:.0f} / {numbers[1]:.0f}"
    kept = sum(row["kept"] for row in cell.rows.values()) / len(values)
    return (
        f"| {task} | {length} | {label} | {max(values):.1%} | **{mean:.1%}** | "
        f"{low:.1%} – {high:.1%} | {sum(value > 0.99 for value in values)} of {len(values)} | "
        f"{_paired(cell, other, column)} | {kept:.0%} | {published} | {'; '.join(notes)} |"
    )


def _paired(cell: Cell, other: Cell | None, column: str) -> str:
    if other is None or other is cell:
        return "–"
    shared = sorted(set(cell.rows) & set(other.rows))
    if len(shared) < 2:
        return "–"
    first = [cell.rows[seed][column] for seed in shared]
    second = [other.rows[seed][column] for seed in shared]
    return f"{paired_p_value(first, second):.3f}"


def search_table(scope: Scope, store: Store) -> str:
    """What the search saw: mean validation accuracy of each rate and threshold, and the choice."""
    lines = [
        "| task | T | family | tried: rate, threshold → mean validation accuracy | chosen |",
        "|---|---|---|---|---|",
    ]
    for task, length in scope.cells():
        for clipped in (False, True):
            choice = search.choose(store, task, length, clipped, scope.epochs, scope.networks)
            if choice is None:
                continue
            scores: dict[str, list[float]] = {}
            for config in search.configs(task, length, clipped, scope.epochs, scope.networks):
                row = store.get(config)
                assert row is not None, "a finished search has every row"
                name = _pair(config.learning_rate, config.clip)
                scores.setdefault(name, []).append(row["validation_accuracy"])
            tried = "; ".join(f"{name} → {sum(v) / len(v):.1%}" for name, v in scores.items())
            family = "clipped" if clipped else "not clipped"
            chosen = _pair(choice.learning_rate, choice.clip)
            lines.append(f"| {task} | {length} | {family} | {tried} | **{chosen}** |")
    return "\n".join(lines) + "\n"


def _pair(rate: float, clip: float | None) -> str:
    return f"{rate:g}" if clip is None else f"{rate:g}, {clip:g}"


def agreement_table(rows: Sequence[dict[str, str]]) -> str:
    """Right signs, rank correlation and calibration of both estimators, task by task, by phase."""
    lines = [
        "| task | T | part of training | updates | right sign: frozen | full | "
        "rank correlation: frozen | full | slope of measured on predicted: frozen | full |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for place in dict.fromkeys((row["task"], row["length"]) for row in rows):
        own = [row for row in rows if (row["task"], row["length"]) == place]
        for phase, start, end in PHASES:
            frozen, full = (compare(own, name, start, end) for name in ("frozen", "full"))
            lines.append(
                f"| {place[0]} | {place[1]} | {phase} ({start:.0%} – {end:.0%}) | {full.updates} | "
                f"{frozen.right_sign:.1%} | **{full.right_sign:.1%}** | {frozen.correlation:.2f} | "
                f"{full.correlation:.2f} | {frozen.slope:.2f} | {full.slope:.2f} |"
            )
    return "\n".join(lines) + "\n"
