"""The figures of the documentation, made when it is built: what they show is what the code does.

Each is drawn twice, for light and for dark pages. `python docs/figures.py FOLDER` draws them too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import gradsieve as gs
from gradsieve.experiments.agreement import Predictions
from gradsieve.training import Extension, Job, run_one
from gradsieve.training.probe import lags, log10_norms

VARIANCES = (0.005, 0.01, 0.02)
PROTOCOL = gs.recipes.paper("off").replaced(
    learning_rate=1e-3,
    clip=1.0,
    epochs=40,
    sizes=(20_000, 200, 200),
    validate_every=2,
    probe_every=1,
)


@dataclass(frozen=True)
class Look:
    """Colours of one theme. Okabe and Ito's; lines also differ in their dashes."""

    ink: str
    series: tuple[str, str, str]
    safe: str

    def style(self) -> dict[str, Any]:
        return {
            "font.size": 9,
            "font.family": "sans-serif",
            "svg.fonttype": "none",
            "svg.hashsalt": "gradsieve",
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            **dict.fromkeys(
                ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"),
                self.ink,
            ),
        }


LOOKS = {
    "light": Look("#16202c", ("#0072b2", "#d55e00", "#009e73"), "#009e73"),
    "dark": Look("#dde5ee", ("#56b4e9", "#ff9d4d", "#2fd0a0"), "#2fd0a0"),
}
DASHES = ("-", "--", ":")


def initial(variance: float = 0.01, seed: int = 0) -> tuple[gs.SRN, Any]:
    task = gs.tasks.temporal_order(length=100)
    net = gs.SRN.random(
        task.inputs, 100, task.outputs, task.output, variance=variance, seed=seed, dtype=np.float64
    )
    return net, task


def spectra(look: Look) -> Figure:
    """Eigenvalues of w_rec for three variances, on the unit circle."""
    figure = Figure(figsize=(7.5, 2.7), layout="constrained")
    circle = np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    for axis, variance in zip(figure.subplots(1, 3, sharey=True), VARIANCES, strict=True):
        values = np.linalg.eigvals(initial(variance)[0].w_rec)
        axis.plot(circle.real, circle.imag, color=look.ink, lw=1)
        axis.scatter(values.real, values.imag, s=9, color=look.series[0])
        axis.set_title(f"variance {variance:g}: radius {np.abs(values).max():.2f}")
        axis.set_aspect("equal")
        axis.set_xlim(-1.6, 1.6)
        axis.set_ylim(-1.6, 1.6)
    return figure


def norms_over_lag(look: Look) -> Figure:
    """Gradient norm against lag before training, for three variances."""
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    axis = figure.subplots()
    for variance, colour, dash in zip(VARIANCES, look.series, DASHES, strict=True):
        net, task = initial(variance)
        flow = gs.backpropagate(net, *task.sample(100, seed=1))
        norms = log10_norms(flow)[::-1]
        label = f"variance {variance:g}, Q = {gs.q_factor(flow):+.1f}"
        axis.plot(norms, dash, color=colour, lw=2, label=label)
    axis.set_xlabel("steps back from the end of the sequence")
    axis.set_ylabel("log₁₀ mean ‖δ‖")
    axis.legend()
    return figure


@cache
def histories() -> dict[str, dict[str, Any]]:
    """One network trained with clipping alone, and with clipping and a sieve that steers."""
    net, task = initial()
    found = {}
    sieves = {"clipping alone": None, "clipping and sieve": gs.Sieve("steer", (-2.0, 0.5))}
    for name, sieve in sieves.items():
        run = run_one(net.astype(np.float32), Job(task, PROTOCOL.replaced(sieve=sieve)))
        found[name] = {"history": run.history, "test_accuracy": run.test_accuracy}
    return found


def q_in_training(look: Look) -> Figure:
    """Q over training, without and with the sieve, from the same weights."""
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    axis = figure.subplots()
    axis.axhspan(-2.0, 0.5, color=look.safe, alpha=0.15, label="safe range")
    for (name, run), colour, dash in zip(histories().items(), look.series, DASHES, strict=False):
        epochs = [record["epoch"] for record in run["history"]]
        axis.plot(epochs, [r["Q"] for r in run["history"]], dash, color=colour, lw=2, label=name)
    axis.set_xlabel("epoch of 50 updates")
    axis.set_ylabel("Q")
    axis.legend()
    return figure


def reach_in_training(look: Look) -> Figure:
    """Gradient norm relative to the last step, over lag and training, for both runs."""
    figure = Figure(figsize=(7.5, 3), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (name, run) in zip(axes, histories().items(), strict=True):
        probes = [(r["epoch"], r["probe"]["log10_norm"]) for r in run["history"] if r["probe"]]
        values = np.array([norms for _, norms in probes], dtype=float).T
        image = axis.pcolormesh(
            [epoch for epoch, _ in probes],
            lags(100),
            values - values[:1],
            cmap="cividis",
            vmin=-6,
            vmax=1,
            shading="nearest",
            rasterized=True,
        )
        axis.set_title(name)
        axis.set_xlabel("epoch")
        axis.grid(False)
    axes[0].set_ylabel("steps back")
    figure.colorbar(image, ax=axes, label="log₁₀ ‖δ‖ relative to the last step")
    return figure


@cache
def agreement() -> np.ndarray[Any, Any]:
    """(updates, 4): count, frozen, full and measured change, as the paper trains, every 20th."""
    watch = Predictions()
    net, task = initial()
    recipe = PROTOCOL.replaced(
        learning_rate=1e-5, clip=None, epochs=60, validate_every=20, probe_every=0
    )
    run_one(net.astype(np.float32), Job(task, recipe, extension=Extension(observe=watch)))
    return np.array(watch.seen)


def predictions(look: Look) -> Figure:
    """Predicted against measured change of ln‖δ(T−h)‖: frozen and full."""
    _, frozen, full, measured = agreement().T
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    limit = float(np.quantile(np.abs(measured), 0.98)) * 1.3
    panels = zip(figure.subplots(1, 2, sharey=True), (frozen, full), strict=True)
    for (axis, predicted), name, colour in zip(
        panels, ("frozen", "full"), look.series, strict=False
    ):
        axis.plot([-limit, limit], [-limit, limit], color=look.ink, lw=0.8)
        axis.axhline(0, color=look.ink, lw=0.5)
        axis.axvline(0, color=look.ink, lw=0.5)
        axis.scatter(predicted, measured, s=10, color=colour)
        right = (np.sign(predicted) == np.sign(measured)).mean()
        axis.set_title(f"{name}: right sign in {right:.0%}")
        axis.set_xlim(-limit, limit)
        axis.set_ylim(-limit, limit)
        axis.locator_params(nbins=5)
        axis.set_xlabel("predicted")
    figure.axes[0].set_ylabel("measured")
    return figure


FIGURES: dict[str, Callable[[Look], Figure]] = {
    "spectra": spectra,
    "norms-over-lag": norms_over_lag,
    "q-in-training": q_in_training,
    "reach-in-training": reach_in_training,
    "predictions": predictions,
}


def agreement_table() -> str:
    """Sign agreement by part of the run, as Markdown."""
    rows = agreement()
    lines = ["| updates | measured | frozen | full |", "|---|---|---|---|"]
    for start, end in ((0, 500), (500, 3000)):
        part = rows[(rows[:, 0] > start) & (rows[:, 0] <= end)]
        _, frozen, full, measured = part.T
        shares = [
            f"{(np.sign(predicted) == np.sign(measured)).mean():.0%}"
            for predicted in (frozen, full)
        ]
        lines.append(f"| {start + 1}–{end} | {len(part)} | {shares[0]} | {shares[1]} |")
    return "\n".join(lines) + "\n"


def draw(folder: Path) -> None:
    """Draw all of them, and write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in FIGURES.items():
        for theme, look in LOOKS.items():
            with mpl.rc_context(look.style()):
                make(look).savefig(folder / f"{name}-{theme}.svg", metadata={"Date": None})
    (folder / "agreement.md").write_text(agreement_table(), encoding="utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
