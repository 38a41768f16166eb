"""The reports of the documentation's gallery, trained while the documentation is built.

`python docs/reports.py FOLDER` writes them too.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gradsieve as gs
from gradsieve.recipe import Recipe
from gradsieve.report import write_report
from gradsieve.training import Job, run_one

HIDDEN = 100


def _train(folder: Path, recipe: Recipe, label: str, network: int, length: int) -> None:
    task = gs.tasks.temporal_order(length=length)
    sizes = task.inputs, HIDDEN, task.outputs, task.output
    net = gs.SRN.random(*sizes, start=recipe.start, seed=network)
    about = {"label": label, "network": network, "drawn_by": network}
    run_one(net, Job(task, recipe, seed=network, about=about), folder / f"{label}-{network}")


def two_ways(folder: Path) -> None:
    """Two networks, each with the sieve off and on."""
    on = gs.recipes.own_data().replaced(epochs=120, validate_every=4, probe_every=1)
    for network in (1, 2):
        for label, recipe in (("off", on.replaced(sieve="off")), ("on", on)):
            _train(folder, recipe, label, network, length=100)


def one_run(folder: Path) -> None:
    """A single run that learns."""
    recipe = gs.recipes.own_data().replaced(epochs=40, validate_every=1, probe_every=1)
    _train(folder, recipe, "on", 0, length=50)


def vanished(folder: Path) -> None:
    """A single run whose gradient has vanished before it begins."""
    paper = gs.recipes.paper("off").replaced(epochs=12, validate_every=1, probe_every=1)
    small = paper.replaced(start=replace(paper.start, variance=0.005), sizes=(20_000, 200, 200))
    _train(folder, small, "variance 0.005", 0, length=100)


REPORTS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "two-ways": ("Off and on", two_ways),
    "one-run": ("One run that learns", one_run),
    "vanished": ("One run that cannot", vanished),
}


def write(folder: Path) -> None:
    (folder / "reports").mkdir(parents=True, exist_ok=True)
    for name, (title, train) in REPORTS.items():
        with tempfile.TemporaryDirectory() as runs:
            train(Path(runs))
            write_report([Path(runs)], folder / "reports" / f"{name}.html", title)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
