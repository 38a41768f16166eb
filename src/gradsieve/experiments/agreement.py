"""Theorem 1, measured: how often each estimator predicts the change that an update really makes.

A network is trained as usual; every so many updates both estimators predict the change of
ln‖δ(T−h)‖ by the update that is about to be made, and the same minibatch is run again after it.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gradsieve.change import norm_change
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.methods import settings_of
from gradsieve.files import write_atomically
from gradsieve.flow import propagate
from gradsieve.network import SRN, Array
from gradsieve.training.probe import log_far_growth
from gradsieve.training.run import run_one
from gradsieve.training.settings import Settings
from gradsieve.training.step import Outcome, Stepper

EVERY = 20
COLUMNS = ("task", "length", "network", "update", "frozen", "full", "measured")
PHASES = (("early", 0.0, 0.1), ("middle", 0.1, 0.5), ("late", 0.5, 1.0))


@dataclass(frozen=True)
class Agreement:
    """One estimator against the truth, over one part of training."""

    updates: int
    right_sign: float
    correlation: float
    slope: float  # of measured on predicted: 1 is calibrated


class Watched(Stepper):
    """Trains as `Stepper` does and keeps what was predicted and what came."""

    def __init__(self, net: SRN, settings: Settings) -> None:
        super().__init__(net, settings)
        self.seen: list[tuple[int, float, float, float]] = []
        self.count = 0

    def step(self, u: Array, t: Array, starts: Array | None) -> Outcome:
        self.count += 1
        if self.count % EVERY:
            return super().step(u, t, starts)
        before_net = self.net.copy()
        outcome = super().step(u, t, starts)
        if outcome.verdict.keep and self.applied is not None:
            before = propagate(before_net, u, t, starts, self.settings.engine)
            update = before_net.like(self.applied)
            frozen = norm_change(before, update, estimator="frozen").relative
            full = norm_change(before, update, estimator="full").relative
            after = propagate(self.net, u, t, starts, self.settings.engine)
            measured = log_far_growth(before, after, before.length - 1)
            self.seen.append((self.count, frozen, full, measured))
        return outcome


def watch_training(config: RunConfig, folder: Path) -> list[dict[str, str]]:
    """The rows of one network; computed once, then read from the folder."""
    path = folder / f"agreement-{config.key}.csv"
    if not path.exists():
        steppers: list[Watched] = []

        def watched(net: SRN, settings: Settings) -> Watched:
            steppers.append(Watched(net, settings))
            return steppers[0]

        run_one(config.initial_network(), config.problem(), settings_of(config), stepper=watched)
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(COLUMNS)
        for update, *values in steppers[0].seen:
            writer.writerow((config.task, config.length, config.network, update, *values))
        write_atomically(path, text.getvalue())
    with path.open() as file:
        return list(csv.DictReader(file))


def compare(rows: list[dict[str, str]], estimator: str, start: float, end: float) -> Agreement:
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
