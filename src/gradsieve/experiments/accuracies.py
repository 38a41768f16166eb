"""The output of studies of accuracies: tables, figures, and the record of every row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from gradsieve.experiments import figures, record, tables
from gradsieve.experiments.config import Condition
from gradsieve.experiments.search import Arm
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Scope, Study, reported
from gradsieve.files import write_atomically
from gradsieve.training.record import versions


def against(*arms: Arm) -> dict[str, tables.Opponent]:
    """Every arm is compared with each of these."""
    return {arm.name: lambda _, name=arm.name: name for arm in arms}  # type: ignore[misc]


def write_accuracies(
    study: Study,
    scope: Scope,
    store: Store,
    output: Path,
    opponents: Mapping[str, tables.Opponent],
) -> dict[Condition, tables.Arms]:
    """Write the rows of a study so far, and return them."""
    configs = study.plan(scope, store)
    by_condition = tables.by_condition(reported(configs), store)
    found = {place: arms for place, arms in by_condition.items() if arms}
    conditions = list(dict.fromkeys(config.condition for config in configs))
    searches = tables.searches(study.arms, conditions, scope, store)
    table = tables.accuracy_table(found, scope.networks, opponents, searches)
    regression = {
        place: arms for place, arms in found.items() if place.problem().output == "linear"
    }
    if regression:
        table += "\nThe regression tasks with a tolerance of 0.04 in place of the task's own:\n\n"
        table += tables.accuracy_table(
            regression, scope.networks, opponents, searches, "within_0.04"
        )
    searched = tables.search_table(searches)
    write_atomically(output / f"{study.name}.md", f"{table}\nThe search behind it:\n\n{searched}")
    write_record(store, output)
    if found:
        order = [arm.name for arm in study.arms]
        pairs = {arm.name: arm.beside for arm in study.arms if arm.beside}
        chance = {str(place): place.problem().constant_guess for place in found}
        values = tables.column_of(found, "test_accuracy")
        figure = figures.accuracies(values, chance, order, pairs)
        figures.save(figure, output / f"{study.name}.png")
        figure = figures.updates(tables.column_of(found, "updates"), order, pairs)
        figures.save(figure, output / f"{study.name}-updates.png")
    return found


def write_record(store: Store, output: Path) -> None:
    """Write every row of the store, and the versions that computed them."""
    record.write_csv(output / "runs.csv", store, reported=True)
    record.write_csv(output / "search.csv", store, reported=False)
    write_atomically(output / "machine.json", json.dumps(versions(), indent=1) + "\n")
