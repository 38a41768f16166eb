"""Figures of accuracies and updates: every network of every arm, and a summary by length."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    EngFormatter,
    LogLocator,
    NullFormatter,
    PercentFormatter,
)

# Okabe and Ito's colours: told apart by colour-blind readers and in grey.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}
NOT_RUN = "where there are no dots, nothing was run"


def save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata={"Software": None})


Values = Mapping[str, Mapping[str, Sequence[float]]]  # by condition, arm and network
Pairs = Mapping[str, str]  # an arm with hold, and the same without
NO_PAIRS: Pairs = {}


def accuracies(
    found: Values, chance: Mapping[str, float], order: Sequence[str] = (), pairs: Pairs = NO_PAIRS
) -> Figure:
    """Every network of every arm as a dot, the mean as a bar; one panel a condition."""
    figure, axes = _panels(found, np.mean, order, pairs)
    for place, axis in axes.items():
        axis.axvline(chance[place], color="grey", ls=":", lw=1)
        axis.set_xlim(0, 1.03)
        axis.set_xticks([0, 0.5, 1])
    figure.supxlabel(f"test accuracy; dotted: a constant guess; {NOT_RUN}", fontsize=9)
    return figure


def updates(found: Values, order: Sequence[str] = (), pairs: Pairs = NO_PAIRS) -> Figure:
    """How many updates every network took, the median as a bar."""
    figure, axes = _panels(found, np.median, order, pairs)
    for axis in axes.values():
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())  # over less than a decade they overlap
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=20))
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.supxlabel(f"updates; {NOT_RUN}", fontsize=9)
    return figure


SUMMARY = {  # how an arm is drawn: its colour, and a broken line where it does not hold
    "SGD": ("grey", ":"),
    "the paper's skip": (ORANGE, ":"),
    "clipping": (BLUE, "--"),
    "RMSprop + clipping": (GREEN, "--"),
    "RMSprop + clipping, hold": (GREEN, "-"),
    "advised": (RED, "--"),
    "advised, hold": (RED, "-"),
}


def summary(
    means: Mapping[str, Mapping[str, Mapping[int, float]]], chance: Mapping[str, float]
) -> Figure:
    """Mean accuracy by length: a panel for each task, a curve for each arm of the summary."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, 3.1), layout="constrained")
        axes = figure.subplots(1, len(means), sharey=True, sharex=True, squeeze=False)[0]
        for axis, (task, arms) in zip(axes, means.items(), strict=True):
            axis.axhline(chance[task], color="grey", lw=0.8, zorder=0)
            for name, (colour, line) in SUMMARY.items():
                by_length = arms.get(name, {})
                axis.plot(
                    list(by_length), list(by_length.values()), line, color=colour, label=name,
                    marker="o", ms=4, markerfacecolor=colour if line == "-" else "white",
                )  # fmt: skip
            axis.set_title(task)
        lengths = {length for arms in means.values() for by in arms.values() for length in by}
        axes[0].set_xticks(sorted(lengths))
        axes[0].set_ylim(0, 1.04)
        axes[0].yaxis.set_major_formatter(PercentFormatter(1))
        keys, names = axes[0].get_legend_handles_labels()
        figure.legend(keys, names, loc="outside upper center", ncols=len(names), fontsize=8)
        figure.supxlabel(
            "steps in a sequence; mean test accuracy of the networks; grey: a constant guess",
            fontsize=9,
        )
    return figure


def _panels(
    found: Values,
    middle: Callable[[Sequence[float]], Any],
    order: Sequence[str],
    pairs: Pairs,
) -> tuple[Figure, dict[str, Any]]:
    """A panel for each condition; an arm has one line in all of them, with and without hold."""
    seen = {name for arms in found.values() for name in arms}
    known = [name for name in order if name in seen] + sorted(seen - set(order))
    lines = list(dict.fromkeys(pairs.get(name, name) for name in known))
    places = {name: _place(name, lines, seen, pairs) for name in seen}
    with mpl.rc_context(STYLE):
        columns = min(4, len(found))
        rows = math.ceil(len(found) / columns)
        height = rows * (0.3 * len(lines) + 0.7) + 0.5
        figure = Figure(figsize=(max(7.0, 2.4 + 2.4 * columns), height), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axis, (place, arms) in zip(axes, found.items(), strict=False):
            for name, values in arms.items():
                _dots(axis, values, middle(values), places[name], RED if name in pairs else BLUE)
            axis.set_ylim(len(lines) - 0.4, -0.6)
            axis.set_yticks(range(len(lines)), lines)
            axis.tick_params(labelbottom=True)
            axis.set_title(place, fontsize=9)
        for axis in axes[len(found) :]:
            axis.set_axis_off()
        if seen & set(pairs):
            handles = [
                Line2D([], [], marker="o", ls="", ms=3.5, color=colour, label=text)
                for colour, text in ((BLUE, "without hold"), (RED, "with hold"))
            ]
            figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure, dict(zip(found, axes, strict=False))


def _place(name: str, lines: Sequence[str], seen: Collection[str], pairs: Pairs) -> float:
    """The height of an arm: its line, or above it without hold and below with it, if both ran."""
    line = pairs.get(name, name)
    partners = {held for held, plain in pairs.items() if plain == line}
    if line not in seen or not partners & set(seen):
        return lines.index(line)
    return lines.index(line) + (0.2 if name in pairs else -0.2)


def _dots(axis: Any, values: Sequence[float], middle: float, place: float, colour: str) -> None:
    """Each network as a dot, from the best down, and their mean or median as a bar."""
    spread = np.linspace(-0.14, 0.14, len(values)) if len(values) > 1 else np.zeros(1)
    axis.plot(np.sort(values)[::-1], place + spread, "o", ms=3, color=colour, alpha=0.7, mew=0)
    axis.plot([middle] * 2, [place - 0.2, place + 0.2], color=colour, lw=2)
