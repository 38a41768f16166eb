"""Figure 2 of the paper: the inside of one network during training, without and with the sieve.

Beside the paper's two (off, and on by Lemma 1) stand the full estimator, clipping, and clipping
with the policy "hold".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.experiments.figures import BLUE, GREEN, ORANGE, RED, STYLE, save
from gradsieve.experiments.search import Arm
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study
from gradsieve.experiments.ways import CLIPPED, SGD, held, skipping
from gradsieve.experiments.workers import worker_processes
from gradsieve.recipe import Sieve
from gradsieve.sieve import Policy
from gradsieve.training.run import run_one

History = list[dict[str, Any]]
WHERE = Condition("temporal_order", 100)
ARMS = (
    Arm("SGD", SGD),
    Arm("skip (Lemma 1)", skipping(SGD, "frozen")),
    Arm("skip (full dS)", skipping(SGD, "full")),
    Arm("clipping", CLIPPED),
    Arm("clipping, hold", held(CLIPPED)),
)


def history(config: RunConfig, folder: Path) -> History:
    """The history of one arm, with a look inside at every record."""
    where = folder / f"figure2-{config.key}"
    return run_one(config.initial_network(), config.job(), where).history


def write(scope: Scope, store: Store, places: Places) -> None:
    looking = {"probe_every": 1, "stop_at": None}
    runs = [arm.run(WHERE, 0, scope.epochs, looking) for arm in ARMS]
    with worker_processes(places.jobs) as pool:
        histories = list(pool.map(history, runs, [places.folder] * len(runs)))
    columns = [
        (run.arm, seen, (run.recipe.sieve or Sieve("skip")).at_work())
        for run, seen in zip(runs, histories, strict=True)
    ]
    save(draw(columns), places.output / "figure2.png")


def draw(arms: Sequence[tuple[str, History, Policy]]) -> Figure:
    """One column an arm (name, history, policy): heat map, activations, Q and shares."""
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


def _inside(axes: Any, name: str, history: History, policy: Policy) -> Any:
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
    axes[2].axhspan(*policy.q_range, color=GREEN, alpha=0.15, label="safe range")
    axes[2].plot(all_epochs, Q, color=BLUE, lw=1, label=policy.measure)
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


STUDY = Study("figure2", write)
