"""Figure 1 of the paper: gradient norms against depth before training, for three variances."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from gradsieve import tasks
from gradsieve.experiments.figures import BLUE, GREEN, RED, STYLE, save
from gradsieve.experiments.store import Store
from gradsieve.experiments.study import Places, Scope, Study
from gradsieve.files import write_atomically
from gradsieve.flow import Flow, backpropagate
from gradsieve.network import SRN, Array

VARIANCES = (0.01, 0.005, 0.02)
SEQUENCES = 1000
PART = 100  # sequences in one pass


@dataclass(frozen=True)
class InitialNorms:
    """Mean norms at depth 0 (the last step) … T−1, over networks and sequences."""

    variance: float
    delta: Array  # ‖δ(k)‖
    w_in: Array  # ‖Δw_in(k)‖ = ‖u(k)ᵀ δ(k)‖ of one sequence
    w_rec: Array  # ‖Δw_rec(k)‖ = ‖z(k−1)ᵀ δ(k)‖
    correlation_in: float  # of log10 ‖δ‖ with log10 ‖Δw_in‖ over networks, sequences and depth
    correlation_rec: float


def initial_norms(
    variance: float, length: int = 100, networks: int = 10, sequences: int = SEQUENCES
) -> InitialNorms:
    """Norms of networks 0 … on temporal order, as the paper draws them."""
    task = tasks.temporal_order(length=length)
    u, t = task.sample(sequences, seed=12345)
    collected: list[Array] = []
    flow: Flow | None = None
    for network in range(networks):
        net = SRN.random(
            task.inputs, 100, task.outputs, task.output,
            variance=variance, seed=network, dtype=np.float64,
        )  # fmt: skip
        for start in range(0, sequences, PART):
            part = slice(start, start + PART)
            flow = backpropagate(net, u[:, part], t[part], reuse=flow)
            delta = np.linalg.norm(flow.deltas, axis=2)
            # The gradient of one step is an outer product: its norm is the product of two norms.
            w_in = np.linalg.norm(u[:, part], axis=2) * delta
            w_rec = np.linalg.norm(flow.states[:-1], axis=2) * delta
            collected.append(np.stack([delta, w_in, w_rec])[:, ::-1])
    norms = np.concatenate(collected, axis=2)
    delta, w_in, w_rec = norms.mean(axis=2)
    return InitialNorms(
        variance,
        delta,
        w_in,
        w_rec,
        log_correlation(norms[0], norms[1]),
        log_correlation(norms[0], norms[2]),
    )


def log_correlation(first: Array, second: Array) -> float:
    """Correlation of logarithms, where both are above zero (z(0) = 0 has no logarithm)."""
    usable = (first > 0) & (second > 0)
    return float(np.corrcoef(np.log10(first[usable]), np.log10(second[usable]))[0, 1])


def write(scope: Scope, store: Store, places: Places) -> None:
    panels = [initial_norms(variance, networks=scope.networks) for variance in VARIANCES]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("variance", "depth", "delta", "w_in", "w_rec"))
    for panel in panels:
        curves = zip(panel.delta, panel.w_in, panel.w_rec, strict=True)
        for depth, values in enumerate(curves):
            writer.writerow((panel.variance, depth, *(f"{value:.6g}" for value in values)))
    write_atomically(places.output / "figure1.csv", text.getvalue())
    save(draw(panels), places.output / "figure1.png")


def draw(panels: Sequence[InitialNorms]) -> Figure:
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


STUDY = Study("figure1", write)
