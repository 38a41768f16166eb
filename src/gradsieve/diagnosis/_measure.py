"""Q, gradient norm against lag, reach, saturation and spectral radius of a network.

With data, the gradient is that of its targets. Without, the inputs are white noise in the units
of the network and the targets are drawn at random: then the numbers speak of the network alone.

*Reach* is the longest lag at which the gradient still keeps at least a tenth of its size at the
last step. On the way there it may be smaller: what comes back at a lag has passed all shorter ones.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.flow import Engine, backpropagate
from gradsieve.model import Model
from gradsieve.network import Array

KEPT = -1.0  # log10 of the share that the gradient must keep
SATURATED = 0.9
SEQUENCES = 200
STATES = 20_000_000  # of all units, steps and sequences together: bounds memory
SHORT = 0.1  # share of sequences that may be too short for the horizon
NOISE_STEPS = 100


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` found."""

    sequences: int
    steps: int  # of the longest
    of_data: bool  # or of white noise
    horizon: int
    Q: float | None  # log10 of near over far gradient; None where it is not finite
    lags: list[int]
    log10_ratio: list[float | None]  # gradient at each lag over that at the last step
    reach: int
    factor: float | None  # by which the gradient changes with each step back, to the horizon
    saturated: float  # share of |z| above 0.9
    activation_median: float  # of |z|
    spectral_radius: float
    largest_singular_value: float
    score: float | None  # accuracy or R² on the data
    condition: str  # "vanished", "exploded" or "in range"

    @property
    def verdict(self) -> str:
        """Two sentences for a person."""
        whole = self.reach >= self.steps - 1
        first = (
            f"The gradient reaches back over the whole sequence ({self.reach} steps)."
            if whole
            else f"The gradient reaches {self.reach} of {self.steps - 1} steps back."
        )
        return f"{first} {self._cause()}"

    def _cause(self) -> str:
        if self.condition == "vanished":
            most = f"Over the {self.horizon} steps that nearly all sequences have it vanishes"
            vanishes = "It vanishes" if self.reach < self.horizon else most
            if self.saturated > 0.5:
                return (
                    f"{vanishes} because {self.saturated:.0%} of the activations are saturated: "
                    "smaller inputs or weights help."
                )
            return (
                f"{vanishes}: each step back leaves {self.factor or 0:.2f} of it (spectral radius "
                f"{self.spectral_radius:.2f}). Train with the sieve, or from larger recurrent "
                "weights."
            )
        if self.condition == "exploded":
            return (
                f"It explodes: each step back makes it {self.factor or math.inf:.2f} times as "
                f"large (spectral radius {self.spectral_radius:.2f}). Clip the gradient, or train "
                "with the sieve."
            )
        if self.reach < self.steps - 1:
            return (
                f"Beyond that it keeps less than a tenth of its size; over the {self.horizon} "
                "steps that nearly all sequences have it is within range."
            )
        lowest = min((ratio for ratio in self.log10_ratio if ratio is not None), default=0.0)
        if lowest < KEPT:
            return f"On the way it is down to {10**lowest:.1%} of its size, and comes back."
        return "It neither vanishes nor explodes on the way."

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"verdict": self.verdict}


def typical_horizon(lengths: Array) -> int:
    """The lag that nine in ten sequences have: "far" where lengths differ. 0: there is none."""
    return int(np.quantile(lengths, SHORT, method="lower")) - 1


def diagnose(
    model: Model,
    data: Sequences | None = None,
    steps: int = NOISE_STEPS,
    seed: int = 0,
    engine: Engine = "native",
) -> Diagnosis:
    """Look into a network.

    Args:
        model: the network with its scaling.
        data: raw sequences with their targets; white noise if None.
        steps: of the white noise.
        seed: decides the noise, or which sequences are looked at where there are many.
        engine: of the arithmetic.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    if data is None:
        seen = _noise(model, steps, generator)
        score = None
    else:
        score = model.score(data, engine)
        most = max(1, min(SEQUENCES, STATES // (int(data.lengths.max()) * model.net.hidden)))
        many = data.count > most
        chosen = generator.permutation(data.count)[:most] if many else np.arange(data.count)
        seen = dataclasses.replace(data, targets=model.targets_of(data), classes=model.classes)
        seen = seen.subset(np.sort(chosen))
    u, t, starts = model.scaling.scaled(seen).padded(dtype=model.net.dtype)
    flow = backpropagate(model.net, u, t, engine, starts).of_last_step()
    norms = np.linalg.norm(flow.scaled_deltas.astype(np.float64), axis=2)
    if not np.isfinite(norms).all():
        raise GradsieveError("the network's gradient on this data is not finite: nothing to see")
    ratio = _ratios(norms, flow.exponents, starts)
    active = np.arange(len(u))[:, None] >= starts
    size = np.abs(np.asarray(flow.states[1:], dtype=np.float64))[active]
    horizon = typical_horizon(seen.lengths)
    far = float(ratio[horizon])
    w_rec = model.net.w_rec.astype(np.float64)
    return Diagnosis(
        sequences=seen.count,
        steps=len(u),
        of_data=data is not None,
        horizon=horizon,
        Q=-far if math.isfinite(far) else None,
        lags=list(range(len(ratio))),
        log10_ratio=[value if math.isfinite(value) else None for value in ratio.tolist()],
        reach=_reach(ratio),
        factor=10 ** (far / horizon) if horizon and math.isfinite(far) else None,
        saturated=float((size > SATURATED).mean()),
        activation_median=float(np.median(size)),
        spectral_radius=float(np.abs(np.linalg.eigvals(w_rec)).max()),
        largest_singular_value=float(np.linalg.norm(w_rec, 2)),
        score=score,
        condition="vanished" if far < KEPT else "exploded" if far > -KEPT else "in range",
    )


def _ratios(norms: Array, exponents: Array, starts: Array) -> Array:
    """(T,): log10 of mean ‖δ(T−lag)‖ over mean ‖δ(T)‖, of the sequences that are so long."""
    steps = len(norms)
    ratio = np.full(steps, -math.inf)
    for lag in range(steps):
        long_enough = starts < steps - lag
        near = norms[-1, long_enough].mean()
        far = norms[-1 - lag, long_enough].mean()
        if near > 0 and far > 0:
            shift = (exponents[-1 - lag] - exponents[-1]) * math.log10(2)
            ratio[lag] = math.log10(far / near) + shift
    return ratio


def _reach(ratio: Array) -> int:
    kept = np.flatnonzero(ratio >= KEPT)
    return int(kept[-1]) if kept.size else 0


def _noise(model: Model, steps: int, generator: np.random.Generator) -> Sequences:
    if steps < 2:
        raise InvalidArgument(f"steps is {steps}; it must be at least 2")
    net, scaling = model.net, model.scaling
    noise = generator.standard_normal((SEQUENCES, steps, net.inputs))
    sequences = list(noise * scaling.spread + scaling.mean)
    count = SEQUENCES * steps if model.per_step else SEQUENCES
    if model.classes is not None:
        targets = generator.integers(0, net.outputs, count)
        return from_arrays(sequences, targets, model.classes, model.per_step)
    wanted = scaling.outputs(generator.standard_normal((count, net.outputs)))
    return from_arrays(sequences, wanted, None, model.per_step)
