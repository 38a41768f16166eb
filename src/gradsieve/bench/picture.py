"""The picture of a measurement: how much faster than PyTorch, and how soon a task is solved."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gradsieve.bench.workload import GATES

if TYPE_CHECKING:
    from gradsieve.bench.page import Findings

# Okabe and Ito's colours: told apart by colour-blind readers and in grey.
BARS = {
    "core plain": "#0072B2",
    "core corrected": "#56B4E9",
    "gst plain": "#009E73",
    "gst corrected": "#8FD4B9",
    "JAX plain": "#E69F00",
}
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}


def draw(found: Findings, path: Path) -> None:
    """One panel a cell with one core's ratios, and one with the time to accuracy."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 6 if found.outcomes else 3.5), layout="constrained")
        grid = figure.add_gridspec(2 if found.outcomes else 1, len(GATES))
        for column, cell in enumerate(GATES):
            _speed(figure.add_subplot(grid[0, column]), found, cell, column == 0)
        if found.outcomes:
            _accuracy(figure.add_subplot(grid[1, :]), found)
        figure.savefig(path, dpi=150, metadata={"Software": None})


def _speed(axis: Axes, found: Findings, cell: str, first: bool) -> None:
    rows = [row for row in found.rows if row.size.cell == cell and row.cores == 1]
    names = [name for name in BARS if any(name in row.timings for row in rows)]
    height = 0.8 / max(1, len(names))
    for place, name in enumerate(names):
        ratios = [row.times(name, "PyTorch plain") for row in rows]
        axis.barh(
            [y + place * height for y in range(len(rows))],
            [ratio or 0 for ratio in ratios],
            height,
            color=BARS[name],
            label=name,
        )
    axis.axvline(1, color="grey", lw=1)
    sizes = [f"H={row.size.hidden} B={row.size.batch} T={row.size.length}" for row in rows]
    axis.set_yticks([y + 0.4 - height / 2 for y in range(len(rows))], sizes if first else [])
    axis.invert_yaxis()
    axis.set_title({"tanh": "tanh, against nn.RNN"}.get(cell, f"{cell}, against nn.{cell}"))
    axis.set_xlabel("times as fast, one core")
    if names:
        axis.legend(loc="lower right")


def _accuracy(axis: Axes, found: Findings) -> None:
    """Each network a dot at the seconds it took; a cross where the time ran out."""
    ways = list(dict.fromkeys((one.task, one.length, one.way) for one in found.outcomes))
    for y, way in enumerate(ways):
        runs = [one for one in found.outcomes if (one.task, one.length, one.way) == way]
        for run in runs:
            solved = run.seconds is not None
            mark = "o" if solved else "x"
            axis.plot([run.spent], [y], mark, color=BARS["core plain"] if solved else "#D55E00")
        axis.plot([statistics.median(run.spent for run in runs)], [y], "|", color="grey", ms=18)
    axis.set_yticks(range(len(ways)), [f"{way}\n{task} T={length}" for task, length, way in ways])
    axis.set_ylim(len(ways) - 0.5, -0.5)
    axis.set_xscale("log")
    axis.set_xlabel(
        "seconds of one core until 99 % of the validation sequences are right; x: time ran out; "
        "|: median"
    )
