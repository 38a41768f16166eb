"""Which studies `gradsieve reproduce` knows: the runs that each needs, and what it writes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from gradsieve import tasks
from gradsieve.experiments import (
    ablation,
    agreement,
    beyond,
    equal_time,
    figure1,
    figure2,
    record,
    rescue,
    search,
    table1,
)
from gradsieve.experiments.config import TASKS, Cell, RunConfig
from gradsieve.experiments.methods import sieve_of
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Plan, Scope
from gradsieve.experiments.workers import worker_processes
from gradsieve.files import write_atomically
from gradsieve.report import paper_figures, paper_tables
from gradsieve.sieve import safe_range
from gradsieve.training.record import versions

Write = Callable[[Scope, Store, Path, Path, int], None]
AGREEMENT_NETWORKS = (2000, 2001)
AGREEMENT_RATE, AGREEMENT_CLIP = 1e-3, 1.0


def nothing(scope: Scope, store: Store) -> list[RunConfig]:
    """A study that computes as it writes needs no runs of the store."""
    return []


def write_figure1(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    panels = [
        figure1.initial_norms(variance, networks=scope.networks) for variance in figure1.VARIANCES
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("variance", "depth", "delta", "w_in", "w_rec"))
    for panel in panels:
        curves = zip(panel.delta, panel.w_in, panel.w_rec, strict=True)
        for depth, values in enumerate(curves):
            writer.writerow((panel.variance, depth, *(f"{value:.6g}" for value in values)))
    write_atomically(output / "figure1.csv", text.getvalue())
    paper_figures.save(paper_figures.figure1(panels), output / "figure1.png")


def write_figure2(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    arms = [replace(arm, epochs=scope.epochs) for arm in figure2.ARMS]
    with worker_processes(jobs) as pool:
        histories = list(pool.map(figure2.history, arms, [folder] * len(arms)))
    columns = [
        (arm.label, history, sieve.q_range if (sieve := sieve_of(arm)) else safe_range("skip"))
        for arm, history in zip(arms, histories, strict=True)
    ]
    paper_figures.save(paper_figures.figure2(columns), output / "figure2.png")


def write_agreement(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    networks = AGREEMENT_NETWORKS[: scope.networks]
    configs = [
        RunConfig(
            task, min(scope.lengths), "off", network, AGREEMENT_RATE, AGREEMENT_CLIP,
            epochs=max(5, scope.epochs // 5),
        )
        for task in scope.tasks
        for network in networks
    ]  # fmt: skip
    with worker_processes(jobs) as pool:
        parts = list(pool.map(agreement.watch_training, configs, [folder] * len(configs)))
    rows = [row for part in parts for row in part]
    text = io.StringIO()
    writer = csv.DictWriter(text, agreement.COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(output / "agreement.csv", text.getvalue())
    write_atomically(output / "agreement.md", paper_tables.agreement_table(rows))
    paper_figures.save(paper_figures.agreement(rows), output / "agreement.png")


def write_table1(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    _write_accuracies("table1", table1.plan(scope, store), scope, store, output)


def write_ablation(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    configs = ablation.plan(scope, store)
    reported = _reported(configs)
    reported.sort(
        key=lambda config: ARMS.index(config.label) if config.label in ARMS else len(ARMS)
    )
    with worker_processes(1) as pool:  # so that NumPy's threads do not count as one update's
        timed = pool.submit(equal_time.equal_times, reported, folder).result()
    if timed:  # rows that a record brought have no history to be read
        write_atomically(output / "equal-time.md", paper_tables.equal_time_table(timed))
    against = ("off", "clip", paper_tables.AT_RANDOM)
    _write_accuracies("ablation", configs, scope, store, output, against)


def write_beyond(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    against = ("clip", paper_tables.WITHOUT_HOLD)
    found = _write_accuracies("beyond", beyond.plan(scope, store), scope, store, output, against)
    write_atomically(output / "hold.md", paper_tables.hold_table(found))
    _write_summary(found, table1.plan(scope, store), store, output)


def _write_summary(
    found: Mapping[Cell, paper_tables.Arms],
    papers: Sequence[RunConfig],
    store: Store,
    output: Path,
) -> None:
    """What was found beyond the paper, beside what the paper's own arms have, in few words."""
    own = paper_tables.cells(_reported(papers), store)
    both = {cell: own.get(cell, {}) | found.get(cell, {}) for cell in {**own, **found}}
    named = {
        cell: {
            name: arms[label]
            for name, label in beyond.summarised(cell.task).items()
            if label in arms
        }
        for cell, arms in both.items()
    }
    names = list(beyond.summarised(TASKS[0]))
    write_atomically(output / "summary.md", paper_tables.summary_table(named, names))
    means: dict[str, dict[str, dict[int, float]]] = {}
    for cell, arms in named.items():
        for name, arm in arms.items():
            mean = fmean(arm.column("test_accuracy"))
            means.setdefault(cell.task, {}).setdefault(name, {})[cell.length] = mean
    if means:
        chance = {task: tasks.by_name(task).constant_guess for task in means}
        paper_figures.save(paper_figures.summary(means, chance), output / "summary.png")


def write_rescue(scope: Scope, store: Store, folder: Path, output: Path, jobs: int) -> None:
    _write_accuracies("rescue", rescue.plan(scope, store), scope, store, output, ("clip",))


def _write_accuracies(
    name: str,
    configs: Sequence[RunConfig],
    scope: Scope,
    store: Store,
    output: Path,
    against: Sequence[str] = ("off",),
) -> dict[Cell, paper_tables.Arms]:
    """The table of what there is, its figure, and the record of every row in the store."""
    planned = paper_tables.cells(_reported(configs), store)
    found = {cell: arms for cell, arms in planned.items() if arms}
    table = paper_tables.accuracy_table(found, scope.networks, against)
    regression = {
        cell: arms for cell, arms in found.items() if cell.task in ("adding", "multiplication")
    }
    if regression:
        table += "\nThe regression tasks with a tolerance of 0.04 in place of the task's own:\n\n"
        table += paper_tables.accuracy_table(regression, scope.networks, against, "within_0.04")
    cells = list(dict.fromkeys(config.cell for config in configs))
    searched = paper_tables.search_table(cells, scope, store)
    write_atomically(output / f"{name}.md", f"{table}\nThe search behind it:\n\n{searched}")
    record.write_csv(output / "runs.csv", store, reported=True)
    record.write_csv(output / "search.csv", store, reported=False)
    write_atomically(output / "machine.json", json.dumps(versions(), indent=1) + "\n")
    if found:
        chance = {
            str(cell): tasks.by_name(cell.task, length=cell.length).constant_guess for cell in found
        }
        figure = paper_figures.accuracies(_by_cell(found, "test_accuracy"), chance, ARMS)
        paper_figures.save(figure, output / f"{name}.png")
        figure = paper_figures.updates(_by_cell(found, "updates"), ARMS)
        paper_figures.save(figure, output / f"{name}-updates.png")
    return found


def _reported(configs: Sequence[RunConfig]) -> list[RunConfig]:
    """Those of a plan that a table shows; the others are of a search."""
    return [config for config in configs if config.network not in search.NETWORKS]


def _by_cell(
    found: Mapping[Cell, paper_tables.Arms], column: str
) -> dict[str, dict[str, list[float]]]:
    return {
        str(cell): {label: arm.column(column) for label, arm in arms.items()}
        for cell, arms in found.items()
    }


ARMS = tuple(
    dict.fromkeys(arm.label for study in (table1, ablation, rescue, beyond) for arm in study.ARMS)
)
STUDIES: dict[str, tuple[Plan, Write]] = {
    "figure1": (nothing, write_figure1),
    "figure2": (nothing, write_figure2),
    "agreement": (nothing, write_agreement),
    "table1": (table1.plan, write_table1),
    "ablation": (ablation.plan, write_ablation),
    "rescue": (rescue.plan, write_rescue),
    "beyond": (beyond.plan, write_beyond),
}
