"""The paper's figures, and the ones that it should have had, drawn from what a study computed."""

from __future__ import annotations

import itertools
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
    ScalarFormatter,
)

from gradsieve.experiments.config import HOLD
from gradsieve.experiments.figure1 import InitialNorms

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


def figure1(panels: Sequence[InitialNorms]) -> Figure:
    """Initial gradient norms against depth, one panel a variance."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, panel in zip(axes, panels, strict=True):
            curves = (
                (panel.delta, BLUE, "-", "‖δ(k)‖"),
                (panel.w_in, RED, "--", "‖Δw_in(k)‖"),
                (panel.w_rec, GREEN, ":", "‖Δw_rec(k)‖"),
            )
            for values, colour, line, name in curves:
                depth = np.arange(len(values))
                axis.semilogy(depth, np.where(values > 0, values, np.nan), line, color=colour,
                              label=name, lw=1.8)  # fmt: skip
            axis.set_title(f"variance {panel.variance:g}")
            axis.annotate(
                f"correlation with ‖δ‖:\nΔw_in {panel.correlation_in:.3f}, "
                f"Δw_rec {panel.correlation_rec:.3f}",
                (0.03, 0.03), xycoords="axes fraction", ha="left", fontsize=8,
            )  # fmt: skip
            axis.set_xlabel("steps back from the end")
        axes[0].set_ylabel("mean norm before training")
        axes[0].legend()
    return figure


def figure2(arms: Sequence[tuple[str, list[dict[str, Any]], tuple[float, float]]]) -> Figure:
    """One column an arm (name, history, safe range): heat map, activations, Q and shares."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.4 * len(arms) + 0.6, 8.5), layout="constrained")
        axes = figure.subplots(4, len(arms), sharex=True, sharey="row", squeeze=False)
        images = [_inside(axes[:, column], *arm) for column, arm in enumerate(arms)]
        low = min(image.get_array().min() for image in images)
        high = max(image.get_array().max() for image in images)
        for image in images:
            image.set_clim(max(low, high - 20), high)
        bar = figure.colorbar(
            images[0], ax=axes, extend="min", shrink=0.22, anchor=(0.0, 1.0), aspect=12, pad=0.01
        )
        bar.set_label("log10 ‖δ‖")
    return figure


def _inside(
    axes: Any, name: str, history: list[dict[str, Any]], q_range: tuple[float, float]
) -> Any:
    probed = [record for record in history if record["probe"] is not None]
    epochs = [record["epoch"] for record in probed]
    looks = [record["probe"] for record in probed]
    norms = np.array([[math.nan if v is None else v for v in look["log10_norm"]] for look in looks])
    image = axes[0].pcolormesh(epochs, looks[0]["lags"], norms.T,
                               cmap="viridis", shading="nearest", rasterized=True)  # fmt: skip
    axes[0].set_title(name)
    for key, colour, line, text in (
        ("activation_mean", BLUE, "-", "mean |z|"),
        ("activation_median", GREEN, "--", "median |z|"),
        ("saturated", RED, ":", "share |z| > 0.9"),
    ):
        axes[1].plot(epochs, [look[key] for look in looks], line, color=colour, label=text)
    axes[1].set_ylim(-0.02, 1.02)
    all_epochs = [record["epoch"] for record in history]
    Q = [math.nan if record["Q"] is None else record["Q"] for record in history]
    axes[2].axhspan(*q_range, color=GREEN, alpha=0.15, label="safe range")
    measure = "slow Q" if name.startswith("hold") else "Q"
    axes[2].plot(all_epochs, Q, color=BLUE, lw=1, label=measure)
    axes[2].set_yscale("symlog", linthresh=2)
    axes[2].yaxis.set_major_formatter(ScalarFormatter())
    axes[3].plot(all_epochs, [r["accuracy"] for r in history], color=BLUE, lw=1, label="accuracy")
    axes[3].plot(all_epochs, [r["kept"] for r in history], ":", color=ORANGE, label="kept share")
    axes[3].set_ylim(-0.02, 1.02)
    axes[3].set_xlabel("epoch")
    for axis, label in zip(axes, ("steps back", "activation", "Q", "share"), strict=True):
        axis.set_ylabel(label)
    for axis in axes[1:]:
        axis.legend(fontsize=7)
    return image


def agreement(rows: Sequence[Mapping[str, str]]) -> Figure:
    """Predicted against measured change; and how often the sign is right, by its size."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 3)
        measured = np.array([float(row["measured"]) for row in rows])
        for axis, estimator, colour in zip(axes, ("frozen", "full"), (ORANGE, BLUE), strict=False):
            predicted = np.array([float(row[estimator]) for row in rows])
            axis.axline((0, 0), slope=1, color="grey", lw=0.8, zorder=0)
            axis.plot(predicted, measured, ".", ms=1.5, alpha=0.4, color=colour, rasterized=True)
            for scale in (axis.set_xscale, axis.set_yscale):
                scale("symlog", linthresh=1e-4)
            axis.set_xlim(-10, 10)
            axis.set_ylim(-10, 10)
            axis.set_xticks([-1, -1e-2, 0, 1e-2, 1])
            axis.set_yticks([-1, -1e-2, 0, 1e-2, 1])
            axis.set_title(estimator)
            axis.set_xlabel("predicted change of ln‖δ(T−h)‖")
            _sign_by_size(axes[2], predicted, measured, colour, estimator)
        axes[0].set_ylabel("measured change")
        axes[2].axhline(0.5, color="grey", lw=0.8)
        axes[2].set(xscale="log", xlim=(1e-6, 10), ylim=(0, 1.02), xlabel="|predicted change|")
        axes[2].set_title("share of right signs")
        axes[2].legend(loc="lower right")
    return figure


def _sign_by_size(axis: Any, predicted: Any, measured: Any, colour: str, name: str) -> None:
    usable = np.isfinite(predicted) & np.isfinite(measured) & (predicted != 0)
    size, right = np.abs(predicted[usable]), np.sign(predicted) == np.sign(measured)
    edges = 10.0 ** np.arange(-6, 2.01, 0.5)
    centres, shares = [], []
    for low, high in itertools.pairwise(edges):
        inside = (size >= low) & (size < high)
        if inside.sum() >= 20:
            centres.append(math.sqrt(low * high))
            shares.append(right[usable][inside].mean())
    axis.plot(centres, shares, "o-", color=colour, label=name, ms=3)


Values = Mapping[str, Mapping[str, Sequence[float]]]  # by cell, arm and network


def accuracies(cells: Values, chance: Mapping[str, float], order: Sequence[str] = ()) -> Figure:
    """Every network of every arm as a dot, the mean as a bar; one panel a cell."""
    figure, axes = _panels(cells, np.mean, order)
    for cell, axis in axes.items():
        axis.axvline(chance[cell], color="grey", ls=":", lw=1)
        axis.set_xlim(0, 1.03)
        axis.set_xticks([0, 0.5, 1])
    figure.supxlabel(f"test accuracy; dotted: a constant guess; {NOT_RUN}", fontsize=9)
    return figure


def updates(cells: Values, order: Sequence[str] = ()) -> Figure:
    """How many updates every network took, the median as a bar."""
    figure, axes = _panels(cells, np.median, order)
    for axis in axes.values():
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())  # over less than a decade they overlap
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=20))
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.supxlabel(f"updates; {NOT_RUN}", fontsize=9)
    return figure


SUMMARY = {  # how an arm is drawn: its colour, and a broken line where it does not hold
    "off": ("grey", ":"),
    "the paper's skip": (ORANGE, ":"),
    "clip": (BLUE, "--"),
    "rms+clip": (GREEN, "--"),
    "rms+clip, with hold": (GREEN, "-"),
    "advised": (RED, "--"),
    "advised, with hold": (RED, "-"),
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
    cells: Values, middle: Callable[[Sequence[float]], Any], order: Sequence[str]
) -> tuple[Figure, dict[str, Any]]:
    """A panel for each cell; an arm has one line in all of them, with and without `hold`."""
    found = {label for arms in cells.values() for label in arms}
    known = [label for label in order if label in found] + sorted(found - set(order))
    lines = list(dict.fromkeys(label.removeprefix(HOLD) for label in known))
    places = {label: _place(label, lines, found) for label in found}
    with mpl.rc_context(STYLE):
        columns = min(4, len(cells))
        rows = math.ceil(len(cells) / columns)
        height = rows * (0.3 * len(lines) + 0.7) + 0.5
        figure = Figure(figsize=(max(7.0, 1.6 + 2.4 * columns), height), layout="constrained")
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axis, (cell, arms) in zip(axes, cells.items(), strict=False):
            for label, values in arms.items():
                colour = RED if label.startswith(HOLD) else BLUE
                _dots(axis, values, middle(values), places[label], colour)
            axis.set_ylim(len(lines) - 0.4, -0.6)
            axis.set_yticks(range(len(lines)), lines)
            axis.tick_params(labelbottom=True)
            axis.set_title(cell, fontsize=9)
        for axis in axes[len(cells) :]:
            axis.set_axis_off()
        if any(label.startswith(HOLD) for label in found):
            handles = [
                Line2D([], [], marker="o", ls="", ms=3.5, color=colour, label=text)
                for colour, text in ((BLUE, "without hold"), (RED, "with hold"))
            ]
            figure.legend(handles=handles, loc="outside upper left", ncols=2)
    return figure, dict(zip(cells, axes, strict=False))


def _place(label: str, lines: Sequence[str], found: Collection[str]) -> float:
    """On its line; without `hold` above it and with it below, where both were run."""
    line = label.removeprefix(HOLD)
    if not {line, HOLD + line} <= set(found):
        return lines.index(line)
    return lines.index(line) + (0.2 if label.startswith(HOLD) else -0.2)


def _dots(axis: Any, values: Sequence[float], middle: float, place: float, colour: str) -> None:
    """Every network a dot, from the best down, and what is in the middle of them a bar."""
    spread = np.linspace(-0.14, 0.14, len(values)) if len(values) > 1 else np.zeros(1)
    axis.plot(np.sort(values)[::-1], place + spread, "o", ms=3, color=colour, alpha=0.7, mew=0)
    axis.plot([middle] * 2, [place - 0.2, place + 0.2], color=colour, lw=2)
