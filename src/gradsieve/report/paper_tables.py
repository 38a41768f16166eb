"""The tables of a study as Markdown: what was run, what the paper says, what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gradsieve import tasks
from gradsieve.experiments import search
from gradsieve.experiments.agreement import PHASES, compare
from gradsieve.experiments.config import HOLD, Cell, RunConfig
from gradsieve.experiments.equal_time import EqualTime
from gradsieve.experiments.statistics import bootstrap_interval, paired_p_value
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope
from gradsieve.experiments.table1 import PAPER

# What an arm may be compared with, besides a label.
WITHOUT_HOLD = "the same without hold"
AT_RANDOM = "random skipping at its rate"  # of `full`, whose rate random skipping takes over
FLOOR = 0.02  # a mean within this of the constant guess has not left the floor


@dataclass(frozen=True)
class ArmRows:
    """The rows of one arm in one cell, by network."""

    rows: Mapping[int, Mapping[str, Any]]

    def column(self, column: str) -> list[float]:
        return [self.rows[seed][column] for seed in sorted(self.rows)]


Arms = dict[str, ArmRows]


def cells(configs: Sequence[RunConfig], store: Store) -> dict[Cell, Arms]:
    """What there is of a plan, by cell and then by label."""
    found: dict[Cell, dict[str, dict[int, Mapping[str, Any]]]] = {}
    for config in configs:
        row = store.get(config)
        arms = found.setdefault(config.cell, {})
        rows = arms.setdefault(config.label, {})
        if row is not None:
            rows[config.network] = row
    return {
        place: {label: ArmRows(rows) for label, rows in arms.items() if rows}
        for place, arms in found.items()
    }


def accuracy_table(
    found: Mapping[Cell, Arms],
    networks: int,
    against: Sequence[str],
    column: str = "test_accuracy",
) -> str:
    """Best and mean, interval, how many above 99 %, paired tests, the paper's numbers.

    The tests are of the accuracies and of the updates that a network took, `accuracy / updates`.
    """
    heads = [f"p against {other}: accuracy / updates" for other in against]
    columns = ["task", "T", "sieve", "best", "mean", "95 % interval", "> 99 %", "median updates"]
    columns += [*heads, "kept", "paper best / mean", "note"]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for cell, arms in found.items():
        for label, arm in arms.items():
            values = arm.column(column)
            low, high = bootstrap_interval(values)
            updates = median(row["updates"] for row in arm.rows.values())
            tests = [_tests(arm, _opponent(arms, label, other), column) for other in against]
            kept = sum(row["kept"] for row in arm.rows.values()) / len(values)
            lines.append(
                f"| {cell.task} | {cell.length} | {label} | {max(values):.1%} | "
                f"**{sum(values) / len(values):.1%}** | {low:.1%} – {high:.1%} | "
                f"{sum(value > 0.99 for value in values)} of {len(values)} | {updates:.0f} | "
                f"{' | '.join(tests)} | {kept:.0%} | "
                f"{_published(cell, label, column)} | {_notes(cell, values, networks, column)} |"
            )
    return "\n".join(lines) + "\n"


def _opponent(arms: Arms, label: str, other: str) -> ArmRows | None:
    opponents = {
        WITHOUT_HOLD: label.removeprefix(HOLD),
        AT_RANDOM: label.replace("full", "random"),
    }
    return arms.get(opponents.get(other, other))


def _published(cell: Cell, label: str, column: str) -> str:
    """What the paper has in this place, if it has it."""
    numbers = PAPER.get((cell.task, cell.length), {})
    if cell.variance != 0.01 or column != "test_accuracy" or label not in numbers:
        return "–"
    pair = numbers[label]
    return "N/A" if pair is None else f"{pair[0]:.0f} / {pair[1]:.0f}"


def _notes(cell: Cell, values: Sequence[float], networks: int, column: str) -> str:
    notes = [] if cell.variance == 0.01 else [f"variance {cell.variance:g}"]
    if len(values) < networks:
        notes.append(f"**{len(values)} of {networks} networks run**")
    floor = tasks.by_name(cell.task, length=cell.length).constant_guess
    if column == "test_accuracy" and sum(values) / len(values) < floor + FLOOR:
        notes.append(f"at its floor (a constant guess: {floor:.1%})")
    return "; ".join(notes)


def _tests(arm: ArmRows, other: ArmRows | None, column: str) -> str:
    """The p of what a column says and of the updates, on the networks that both arms have."""
    if other is None or other is arm:
        return "–"
    shared = sorted(set(arm.rows) & set(other.rows))
    if len(shared) < 2:
        return "–"
    pairs = [
        [[side.rows[seed][name] for seed in shared] for side in (arm, other)]
        for name in (column, "updates")
    ]
    return " / ".join(f"{paired_p_value(first, second):.3f}" for first, second in pairs)


def hold_table(found: Mapping[Cell, Arms]) -> str:
    """What `hold` is worth, in a line each: clipping, and what it is built on without and with it.

    Of each the mean accuracy, how many networks are above 99 %, and the median of their updates.
    """
    lines = [
        "| task | T | built on | clip | without hold | with hold | p of hold: accuracy / updates |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell, arms in found.items():
        for label, arm in arms.items():
            if not label.startswith(HOLD):
                continue
            plain = _opponent(arms, label, WITHOUT_HOLD)
            lines.append(
                f"| {cell.task} | {cell.length} | {label.removeprefix(HOLD)} | "
                f"{_in_short(arms.get('clip'))} | {_in_short(plain)} | **{_in_short(arm)}** | "
                f"{_tests(arm, plain, 'test_accuracy')} |"
            )
    return "\n".join(lines) + "\n"


def _in_short(arm: ArmRows | None, with_updates: bool = True) -> str:
    if arm is None:
        return "–"
    values = arm.column("test_accuracy")
    solved = sum(value > 0.99 for value in values)
    said = f"{sum(values) / len(values):.1%}, {solved} of {len(values)}"
    return said + (f", {median(arm.column('updates')):.0f}" if with_updates else "")


def summary_table(found: Mapping[Cell, Arms], names: Sequence[str]) -> str:
    """Every cell in a line. Of each arm the mean accuracy and how many networks are above 99 %."""
    lines = [f"| task | T | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for cell, arms in found.items():
        told = [_in_short(arms.get(name), with_updates=False) for name in names]
        lines.append(f"| {cell.task} | {cell.length} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def equal_time_table(arms: Sequence[EqualTime]) -> str:
    """The best accuracy on the validation set when the time of plain training is over."""
    lines = [
        "In the time that `off` takes for all of its updates (an update of each arm timed in turns "
        "with that of `off`; accuracy on the validation set):\n",
        "| task | T | sieve | cost of an update | updates in the time | best | mean | > 99 % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        values = arm.accuracies
        reached = "– | – | –"  # of a study so small that nothing was validated in the time
        if values:
            solved = sum(value > 0.99 for value in values)
            mean = sum(values) / len(values)
            reached = f"{max(values):.1%} | **{mean:.1%}** | {solved} of {len(values)}"
        lines.append(
            f"| {arm.cell.task} | {arm.cell.length} | {arm.label} | {arm.cost:.2f} | "
            f"{arm.updates} | {reached} |"
        )
    return "\n".join(lines) + "\n"


def search_table(cells: Sequence[Cell], scope: Scope, store: Store) -> str:
    """What the search saw: mean validation accuracy of each rate and threshold, and the choice."""
    lines = [
        "| task | T | family | tried: rate, threshold, gain, weight → mean validation accuracy "
        "| chosen |",
        "|---|---|---|---|---|",
    ]
    for cell in cells:
        for family in search.TRIED:
            choice = search.choose(store, cell, family, scope.epochs, scope.networks)
            if choice is None:
                continue
            scores: dict[str, list[float]] = {}
            for config in search.configs(cell, family, scope.epochs, scope.networks):
                row = store.get(config)
                assert row is not None, "a finished search has every row"
                tried_choice = search.Choice(config.learning_rate, config.clip, config.options)
                scores.setdefault(str(tried_choice), []).append(row["validation_accuracy"])
            tried = "; ".join(f"{name} → {sum(v) / len(v):.1%}" for name, v in scores.items())
            lines.append(f"| {cell.task} | {cell.length} | {family} | {tried} | **{choice}** |")
    return "\n".join(lines) + "\n"


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
