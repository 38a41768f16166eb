"""How networks that have learned do on lengths that they were not trained on, as a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from gradsieve.experiments.figures import BLUE, GREEN, ORANGE, RED, STYLE

COLOURS = (BLUE, RED, GREEN, ORANGE, "black", "grey")


def draw_generalisation(rows: Sequence[Mapping[str, Any]]) -> Figure:
    """Accuracy against length, in multiples of the training length; a panel for each task.

    A thin line is a network, a thick one the mean over those of one training length.
    """
    tasks = sorted({row["task"] for row in rows})
    lengths = sorted({row["length"] for row in rows})
    with mpl.rc_context(STYLE):
        columns = min(3, len(tasks))
        count = -(-len(tasks) // columns)
        figure = Figure(figsize=(3.2 * columns + 0.6, 2.6 * count + 0.5), layout="constrained")
        axes = figure.subplots(count, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axis, task in zip(axes, tasks, strict=False):
            for place, length in enumerate(lengths):
                own = [row for row in rows if (row["task"], row["length"]) == (task, length)]
                _curves(axis, own, length, COLOURS[place % len(COLOURS)])
            axis.set(title=task, xscale="log", ylim=(0, 1.03))
            axis.axvline(1, color="grey", lw=0.8)
            axis.legend(fontsize=7)
        for axis in axes[len(tasks) :]:
            axis.set_axis_off()
        figure.supxlabel("length of the test sequences / training length", fontsize=9)
        figure.supylabel("accuracy", fontsize=9)
    return figure


def _curves(axis: Any, rows: Sequence[Mapping[str, Any]], trained: int, colour: str) -> None:
    seen: dict[int, list[float]] = {}
    for row in rows:
        points = sorted((int(length), value) for length, value in row["at_length"].items())
        if points:
            multiples = [length / trained for length, _ in points]
            axis.plot(multiples, [value for _, value in points], color=colour, lw=0.5, alpha=0.5)
        for length, value in points:
            seen.setdefault(length, []).append(value)
    if seen:
        steps = sorted(seen)
        label = f"T = {trained}, {len(rows)} networks"
        means = [fmean(seen[length]) for length in steps]
        axis.plot([length / trained for length in steps], means, ".-", color=colour, label=label)
