"""Measures of a trained network and of its run, by the name of their column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gradsieve.change import q_factor
from gradsieve.experiments.config import RunConfig
from gradsieve.flow import Flow, backpropagate
from gradsieve.network import SRN, Array, Weights
from gradsieve.training import Run

SEED = 1000
PART = 100  # sequences in one pass


@dataclass(frozen=True)
class Seen:
    """A finished run, and the length of each gradient beside its usual length."""

    config: RunConfig
    run: Run
    gradients: list[tuple[float, float]]

    @property
    def net(self) -> SRN:
        return self.run.final

    def flow(self, seed: int = 5, count: int = PART) -> Flow:
        u, t, starts = self.config.condition.problem().sample_with_starts(count, seed)
        return backpropagate(self.net, u, t, starts=starts)


Measure = Callable[[Seen], float]


def last_half(seen: Seen) -> Array:
    """Gradient norms and their usual length, of the second half of the updates."""
    return np.array(seen.gradients[len(seen.gradients) // 2 :]).T


def signal(seen: Seen) -> float:
    """The cosine between the gradients of two disjoint sets of 2000 sequences."""
    one, other = (
        np.sum([seen.flow(seed).gradient.w_rec.ravel() for seed in seeds], axis=0)
        for seeds in (range(7700, 7720), range(7800, 7820))
    )
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def coherence(seen: Seen) -> float:
    """How much of δ survives an average over the far fifth of the sequence."""
    far = seen.flow().deltas[: seen.config.condition.length // 5]
    return float(
        np.linalg.norm(far.mean(axis=0), axis=1).mean() / np.linalg.norm(far, axis=2).mean()
    )


def top_tenth(seen: Seen) -> float:
    """The share of Σ ‖δ(1)‖ that a tenth of the sequences hold."""
    norms = np.linalg.norm(seen.flow().deltas[0], axis=1)
    return float(np.sort(norms)[-PART // 10 :].sum() / norms.sum())


def minibatches(seen: Seen) -> list[Weights]:
    return [seen.flow(seed, count=10).gradient for seed in range(100)]


def top_direction(seen: Seen) -> float:
    """The share of the squared gradient along one direction, common to 100 minibatches."""
    unit = np.array([one.flat / np.linalg.norm(one.flat) for one in minibatches(seen)])
    return float(np.linalg.norm(unit, ord=2) ** 2 / len(unit))


def in_biases(seen: Seen) -> float:
    """The share of the squared gradient in the hidden biases."""
    return float(np.mean([(one.b**2).sum() / (one.flat**2).sum() for one in minibatches(seen)]))


MEASURES: dict[str, Measure] = {
    "test accuracy": lambda seen: seen.run.test_accuracy,
    "last accuracy": lambda seen: seen.run.history[-1]["accuracy"],
    "updates": lambda seen: seen.run.updates,
    "kept": lambda seen: seen.run.kept,
    "stalls": lambda seen: seen.run.stalls,
    "training loss": lambda seen: seen.run.history[-1]["loss"],
    "validation loss": lambda seen: seen.run.history[-1]["validation_loss"],
    "Q": lambda seen: q_factor(seen.flow()),
    "slow Q": lambda seen: seen.run.history[-1]["slow_Q"] or math.nan,
    "roll-backs": lambda seen: sum(one.get("rolled_back", False) for one in seen.run.history),
    "signal": signal,
    "coherence": coherence,
    "top tenth": top_tenth,
    "top direction": top_direction,
    "in biases": in_biases,
    "usual gradient": lambda seen: np.median(last_half(seen)[0]),
    "largest gradient": lambda seen: last_half(seen)[0].max(),
    "filled": lambda seen: np.mean(last_half(seen)[1] > 3 * np.median(last_half(seen)[0])),
}
