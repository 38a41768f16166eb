"""What the sieve is compared with and is not a policy of it: random skipping, and SGD-CR."""

from __future__ import annotations

import hashlib
import math

import numpy as np

from gradsieve.flow import Flow
from gradsieve.network import SRN, Array
from gradsieve.sieve import Verdict
from gradsieve.training.settings import Settings
from gradsieve.training.step import Outcome, Stepper

DRAWN = "drawn to be skipped"


class RandomSkip(Stepper):
    """Skips a minibatch with a fixed probability: what skipping does by itself, unguided."""

    def __init__(self, net: SRN, settings: Settings, kept: float) -> None:
        super().__init__(net, settings)
        self.kept = kept

    def step(self, u: Array, t: Array, starts: Array | None) -> Outcome:
        # Drawn from the minibatch's own bytes: random, and nothing to store in a checkpoint.
        digest = hashlib.blake2b(np.ascontiguousarray(u).tobytes(), digest_size=8).digest()
        if int.from_bytes(digest) >= self.kept * 2**64:
            self.velocity = self.settings.momentum * self.velocity
            return Outcome(Verdict(False, DRAWN), math.nan, math.nan)
        return super().step(u, t, starts)


class Regularised(Stepper):
    """SGD-CR (Pascanu, Mikolov & Bengio 2013, Eqs. 9 and 10): asks every ‖δ(n)‖/‖δ(n+1)‖ to be 1.

    Its gradient is added to the summed gradient of the loss before that is clipped.
    """

    def __init__(self, net: SRN, settings: Settings, weight: float) -> None:
        super().__init__(net, settings)
        self.weight = weight

    def _propagate(self, u: Array, t: Array, starts: Array | None) -> Flow:
        flow = super()._propagate(u, t, starts)
        flow.gradient.w_rec += self.weight * regulariser_gradient(flow)
        return flow


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
