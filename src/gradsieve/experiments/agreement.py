"""Theorem 1, measured: how often each estimator predicts the change that an update really makes.

A network is trained as usual. In every twentieth update each estimator predicts the change of
ln‖δ(T−h)‖ by that update, and the same minibatch is run again after it. The estimator "measured" is
that second run, so it is the truth here, with which the others are compared.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from gradsieve.change import Estimator, norm_change
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.figures import BLUE, ORANGE, STYLE, save
from gradsieve.experiments.search import Arm
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study
from gradsieve.experiments.ways import CLIPPED
from gradsieve.experiments.workers import worker_processes
from gradsieve.files import write_atomically
from gradsieve.flow import propagate
from gradsieve.network import SRN, Array
from gradsieve.text import table
from gradsieve.training import Extension, Outcome, Stepper
from gradsieve.training.run import run_one

EVERY = 20
NETWORKS = (2000, 2001)
PREDICTORS: tuple[Estimator, ...] = ("frozen", "full")
ESTIMATORS: tuple[Estimator, ...] = (*PREDICTORS, "measured")
COLUMNS = ("task", "length", "network", "update", *ESTIMATORS)
PHASES = (("early", 0.0, 0.1), ("middle", 0.1, 0.5), ("late", 0.5, 1.0))
TRAINED = Arm("clipping", CLIPPED)
Rows = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Agreement:
    """One estimator against the truth, over one part of training."""

    updates: int
    right_sign: float
    correlation: float
    slope: float  # of measured on predicted: 1 is calibrated


class Predictions:
    """Keeps each estimator's prediction of every twentieth update of a stepper."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, ...]] = []
        self.count = 0

    def __call__(self, before: SRN, outcome: Outcome, stepper: Stepper) -> None:
        self.count += 1
        flow, applied = stepper.flow, stepper.descent.applied
        if self.count % EVERY or not outcome.verdict.keep or flow is None or applied is None:
            return
        first = propagate(before, flow.u, flow.t, flow.starts, stepper.engine)
        update = before.like(applied)
        said = (norm_change(first, update, estimator=name).relative for name in ESTIMATORS)
        self.seen.append((self.count, *said))


def watch_training(config: RunConfig, folder: Path) -> list[dict[str, str]]:
    """The rows of one network; computed once, then read from the folder."""
    path = folder / f"agreement-{config.key}.csv"
    if not path.exists():
        watch = Predictions()
        run_one(config.initial_network(), config.job(Extension(observe=watch)))
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        place = config.condition
        for update, *values in watch.seen:
            writer.writerow((place.task, place.length, config.network, update, *values))
        write_atomically(path, text.getvalue())
    with path.open() as file:
        return list(csv.DictReader(file))


def compare(rows: Rows, estimator: str, start: float, end: float) -> Agreement:
    """One estimator over the part of training between two shares of its updates."""
    last = max(int(row["update"]) for row in rows)
    chosen = [row for row in rows if start * last < int(row["update"]) <= end * last]
    predicted = np.array([float(row[estimator]) for row in chosen])
    measured = np.array([float(row["measured"]) for row in chosen])
    usable = np.isfinite(predicted) & np.isfinite(measured)
    predicted, measured = predicted[usable], measured[usable]
    return Agreement(
        updates=len(predicted),
        right_sign=float((np.sign(predicted) == np.sign(measured)).mean()),
        correlation=rank_correlation(predicted, measured),
        slope=float((predicted * measured).sum() / (predicted**2).sum()),
    )


def rank_correlation(first: Array, second: Array) -> float:
    """Spearman's; of fewer than two values there is none."""
    if len(first) < 2:
        return math.nan
    own, its = (np.argsort(np.argsort(values)) for values in (first, second))
    return float(np.corrcoef(own, its)[0, 1])


def write(scope: Scope, store: Store, places: Places) -> None:
    runs = [
        TRAINED.run(place, network, max(5, scope.epochs // 5), {})
        for place in scope.conditions(lengths=(100,))
        for network in NETWORKS[: scope.networks]
    ]
    with worker_processes(places.jobs) as pool:
        parts = list(pool.map(watch_training, runs, [places.folder] * len(runs)))
    rows = [row for part in parts for row in part]
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(places.output / "agreement.csv", text.getvalue())
    write_atomically(places.output / "agreement.md", agreement_table(rows))
    save(draw(rows), places.output / "agreement.png")


def agreement_table(rows: Rows) -> str:
    """Right signs, rank correlation and calibration of both predictors, task by task, by phase."""
    head = ["task", "T", "part of training", "updates", "right sign: frozen", "full",
            "rank correlation: frozen", "full", "slope of measured on predicted: frozen",
            "full"]  # fmt: skip
    lines = []
    for place in dict.fromkeys((row["task"], row["length"]) for row in rows):
        own = [row for row in rows if (row["task"], row["length"]) == place]
        for phase, start, end in PHASES:
            frozen, full = (compare(own, name, start, end) for name in PREDICTORS)
            lines.append(
                [*place, f"{phase} ({start:.0%} – {end:.0%})", str(full.updates),
                 f"{frozen.right_sign:.1%}", f"**{full.right_sign:.1%}**",
                 f"{frozen.correlation:.2f}", f"{full.correlation:.2f}",
                 f"{frozen.slope:.2f}", f"{full.slope:.2f}"]
            )  # fmt: skip
    return table(head, lines)


def draw(rows: Rows) -> Figure:
    """Predicted against measured change; and how often the sign is right, by its size."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.5, 3.4), layout="constrained")
        axes = figure.subplots(1, 3)
        measured = np.array([float(row["measured"]) for row in rows])
        for axis, estimator, colour in zip(axes, PREDICTORS, (ORANGE, BLUE), strict=False):
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


STUDY = Study("agreement", write)
