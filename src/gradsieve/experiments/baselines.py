"""Baselines that are no policy of the sieve: each is a value that makes an `Extension`.

| name         | effect                                                                  |
|--------------|-------------------------------------------------------------------------|
| `random`     | leaves out minibatches at random: skipping by itself, unguided          |
| `regularise` | SGD-CR, the regulariser of Pascanu, Mikolov and Bengio (2013)           |
| `listing`    | Algorithm 1 as printed: keeps updates that the paper's text leaves out  |
| `delta variance` | a penalty on the variance of ln‖δ(n)‖ over time                     |
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from gradsieve.errors import InvalidArgument
from gradsieve.flow import Flow
from gradsieve.network import Array
from gradsieve.recipe import Recipe
from gradsieve.settings import Settings, setting
from gradsieve.sieve.skip import Skip
from gradsieve.training import Extension


@dataclass(frozen=True)
class Baseline(Settings, ABC):
    """A study's addition to a recipe, as a value that can be stored."""

    @abstractmethod
    def extension(self, recipe: Recipe) -> Extension:
        """Its addition to each step."""


@dataclass(frozen=True)
class RandomSkip(Baseline):
    """Leaves out minibatches at random."""

    kept: float = setting(0.5, "Share of the minibatches that are kept.", least=0, most=1)

    def extension(self, recipe: Recipe) -> Extension:
        return Extension(leaves_out=self.leaves_out)

    def leaves_out(self, u: Array) -> bool:
        """Drawn from the minibatch's own bytes: random, and nothing to store in a checkpoint."""
        digest = hashlib.blake2b(np.ascontiguousarray(u).tobytes(), digest_size=8).digest()
        return int.from_bytes(digest) >= self.kept * 2**64


@dataclass(frozen=True)
class Regularised(Baseline):
    """SGD-CR (Pascanu, Mikolov & Bengio 2013, Eqs. 9 and 10): asks every ‖δ(n)‖/‖δ(n+1)‖ to be 1.

    Its gradient is added to the summed gradient of the loss before that is clipped.
    """

    weight: float = setting(1.0, "Weight of the regulariser beside the loss.", least=0)

    def extension(self, recipe: Recipe) -> Extension:
        return Extension(penalty=self.penalty)

    def penalty(self, flow: Flow) -> Array:
        gradient = flow.net.like(np.zeros_like(flow.net.flat))
        gradient.w_rec[:] = self.weight * regulariser_gradient(flow)
        return gradient.flat


@dataclass(frozen=True)
class Listing(Baseline):
    """Algorithm 1 as printed."""

    def extension(self, recipe: Recipe) -> Extension:
        if recipe.sieve is None:
            raise InvalidArgument("sieve is None; Algorithm 1 as printed needs a sieve's settings")
        return Extension(policy=AsPrinted(recipe.sieve))


class AsPrinted(Skip):
    """Keeps an update out of range where it leads further away."""

    def keeps(self, wanted: int, dS: float) -> bool:
        return dS * wanted < 0


@dataclass(frozen=True)
class DeltaVariance(Baseline):
    """A penalty on the variance of ln‖δ(n)‖ over time: deltas of one size at every step."""

    weight: float = setting(1.0, "Weight of the penalty beside the loss.", least=0)

    def extension(self, recipe: Recipe) -> Extension:
        return Extension(penalty=self.penalty)

    def penalty(self, flow: Flow) -> Array:
        gradient = flow.net.like(np.zeros_like(flow.net.flat))
        gradient.w_rec[:] = self.weight * variance_gradient(flow)
        return gradient.flat


BASELINES: dict[str, type[Baseline]] = {
    "random": RandomSkip,
    "regularise": Regularised,
    "listing": Listing,
    "delta variance": DeltaVariance,
}


def name_of(baseline: Baseline) -> str:
    return next(name for name, kind in BASELINES.items() if type(baseline) is kind)


def regulariser_gradient(flow: Flow) -> Array:
    """∂Ω/∂w_rec for Ω = Σₙ (‖δ(n)‖/‖δ(n+1)‖ − 1)², averaged over the minibatch.

    As in their paper δ(n+1) and D(n) are held fixed, so that only the one w_rec between the two
    steps counts. A pair of which one has vanished altogether counts for nothing.
    """
    near, far = flow.scaled_deltas[1:], flow.scaled_deltas[:-1]
    units = near.shape[2]
    product = np.linalg.norm(near, axis=2) * np.linalg.norm(far, axis=2)
    usable = product > 0
    product = np.where(usable, product, 1)
    shift = np.exp2((flow.exponents[:-1] - flow.exponents[1:]).astype(near.dtype))[:, None]
    ratio = shift * np.einsum("nbh,nbh->nb", far, far) / product
    factor = np.where(usable, 2 * (ratio - 1) / product, 0) / near.shape[1]
    left = (far * flow.slopes[:-1] * factor[:, :, None]).reshape(-1, units)
    return np.asarray(left.T @ near.reshape(-1, units))


def variance_gradient(flow: Flow) -> Array:
    """∂Ω/∂w_rec for Ω = Varₙ ln‖δ(n)‖, averaged over the minibatch; D(n) and δ(T) are held fixed.

    With μ(n) = ‖δ(n)‖ ∂Ω/∂δ(n), unit deltas d(n) and ratios r(n) = ‖δ(n+1)‖/‖δ(n)‖,

        μ(n) = (2/T) (ln‖δ(n)‖ − mean) d(n) + r(n−1) (μ(n−1) ∘ D(n−1)) w_rec
        ∂Ω/∂w_rec = Σₙ r(n) d(n+1)ᵀ-weighted: w_rec[i,j] += Σ (μ(n) ∘ D(n))[i] r(n) d(n+1)[j]

    A sequence with a delta that has vanished altogether counts for nothing.
    """
    scaled = flow.scaled_deltas.astype(np.float64)
    norms = np.linalg.norm(scaled, axis=2)  # (T,B)
    usable = (norms > 0).all(axis=0)
    norms = np.where(norms > 0, norms, 1)
    logs = np.log(norms) + math.log(2) * flow.exponents[:, None]
    unit = scaled / norms[:, :, None]
    length, count, units = scaled.shape
    pull = 2 / length * (logs - logs.mean(axis=0)) * usable / count
    gradient, reached = np.zeros((units, units)), np.zeros((count, units))
    w_rec = flow.net.w_rec.astype(np.float64)
    for n in range(length - 1):
        ratio = np.exp(np.where(usable, logs[n + 1] - logs[n], 0))[:, None]
        through = (reached + pull[n][:, None] * unit[n]) * flow.slopes[n] * ratio
        gradient += through.T @ unit[n + 1]
        reached = through @ w_rec
    return gradient
