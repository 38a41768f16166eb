"""A network's gradient on its way back: slow Q, norm against lag, reach, saturation.

With data, the gradient is that of its targets, and `judge` interprets it. Without data, the inputs
are white noise in the units of the network and the targets are drawn at random: the numbers then
describe the network alone, and nothing is judged.

*Reach* is the longest lag h at which slow Q(h) is not above its range: how far back the part of the
gradient that keeps its direction still counts. It is the measure that the sieve acts by.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradsieve.change import WINDOW, window_steps
from gradsieve.data import Sequences, filled, from_arrays
from gradsieve.diagnosis._gated import GatedFlow, gated_flow
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.export import Portable
from gradsieve.flow import Engine, Flow, backpropagate
from gradsieve.judgement import NOT_JUDGED, Judgement, LayerReading, judge
from gradsieve.model import Model
from gradsieve.network import Array
from gradsieve.sieve import Sieve
from gradsieve.training.corrections import finite
from gradsieve.training.probe import SATURATED

SEQUENCES = 200
STATES = 20_000_000  # of all units, steps and sequences together: bounds memory
SHORT = 0.1  # share of sequences that may be too short for the horizon
NOISE_STEPS = 100
LEAST_LAGS, MOST_LAGS = 50, 400
DELTAS = 1_000_000_000  # read for all lags together: bounds time


@dataclass(frozen=True)
class Diagnosis:
    """The findings of `diagnose`. A number that is not finite is None."""

    sequences: int
    steps: int  # of the longest
    of_data: bool  # or of white noise
    horizon: int  # the lag that nine in ten sequences have
    q_range: tuple[float, float]  # of slow Q
    slow_Q: float | None  # over the horizon: log10 of near over slow far gradient
    Q: float | None  # Eq. 14's, over the horizon
    lags: list[int]
    slow_Q_at: list[float | None]  # at each lag
    log10_ratio: list[float | None]  # gradient norm at each lag over that at the last step
    reach: int  # steps
    factor: float | None  # by which the norm changes with each step back, to the horizon
    saturated: float  # share of |z| above 0.9
    activation_median: float  # of |z|
    spectral_radius: float | None  # of w_rec; None for gated cells, whose gates are several
    largest_singular_value: float | None
    score: float | None  # accuracy or R² on the data
    loss: float | None  # per target of a last step
    constant_loss: float | None  # of the best constant guess of those targets
    judgement: Judgement

    def __str__(self) -> str:
        """How far the gradient reaches, what that means, and what to try next."""
        source = "" if self.of_data else "On white noise, t"
        the = source or "T"
        whole = self.reach >= self.steps - 1
        far = (
            f"over the whole sequence ({self.reach} steps)"
            if whole
            else f"over {self.reach} of {self.steps - 1} steps"
        )
        said = str(self.judgement)
        return f"{the}he gradient reaches back {far}. {said[0].upper()}{said[1:]}"

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON: symptoms and advice by their names."""
        judged = {
            "symptoms": [symptom.name for symptom in self.judgement.symptoms],
            "evidence": list(self.judgement.evidence),
            "advice": [advice.name for advice in self.judgement.advice],
        }
        return dataclasses.asdict(self) | {"judgement": judged, "verdict": str(self)}


def typical_horizon(lengths: Array) -> int:
    """The lag that nine in ten sequences have: "far" where lengths differ. 0: there is none."""
    return int(np.quantile(lengths, SHORT, method="lower")) - 1


def diagnose(
    model: Model | Portable,
    data: Sequences | None = None,
    steps: int = NOISE_STEPS,
    seed: int = 0,
    engine: Engine = "native",
) -> Diagnosis:
    """Look into a network.

    Args:
        model: the network with its scaling: of tanh units, or one layer of gru or lstm units.
        data: raw sequences with their targets; white noise if None.
        steps: of the white noise.
        seed: decides the noise, or which sequences are looked at where there are many.
        engine: of the arithmetic.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    seen = _noise(model, steps, generator) if data is None else _sample(model, data, generator)
    seen = filled(seen, model.preparation.missing, model.scaling.mean)
    flow = _gone_through(model, seen, engine)
    if not np.isfinite(flow.scaled_deltas).all():
        raise GradsieveError(
            "the network's gradient on this data is not finite; check weights and inputs"
        )
    horizon = typical_horizon(seen.lengths)
    most = max(LEAST_LAGS, min(MOST_LAGS, DELTAS // flow.scaled_deltas.size))
    spread = np.linspace(0, flow.length - 1, min(most, flow.length))
    lags = np.unique(np.append(spread, horizon).astype(int))
    ratio, slow = curves(flow, lags)
    at_horizon = int(np.searchsorted(lags, horizon))
    far, slow_Q = float(ratio[at_horizon]), float(slow[at_horizon])
    active = np.arange(flow.length)[:, None] >= seen.lengths.max() - seen.lengths
    size = np.abs(np.asarray(flow.states[1:], dtype=np.float64))[active]
    saturated = float((size > SATURATED).mean())
    w_rec = model.net.w_rec.astype(np.float64) if isinstance(model, Model) else None
    q_range = Sieve().range
    inside = np.flatnonzero(slow <= q_range[1])
    reach = int(lags[inside[-1]]) if inside.size else 0
    loss, constant = (None, None) if data is None else (flow.loss / seen.count, _constant(flow.t))
    reading = LayerReading(slow_Q, reach, horizon, {"activations": saturated})
    return Diagnosis(
        sequences=seen.count,
        steps=flow.length,
        of_data=data is not None,
        horizon=horizon,
        q_range=q_range,
        slow_Q=finite(slow_Q),
        Q=finite(-far),
        lags=lags.tolist(),
        slow_Q_at=[finite(value) for value in slow.tolist()],
        log10_ratio=[finite(value) for value in ratio.tolist()],
        reach=reach,
        factor=10 ** (far / horizon) if horizon and math.isfinite(far) else None,
        saturated=saturated,
        activation_median=float(np.median(size)),
        spectral_radius=None if w_rec is None else float(np.abs(np.linalg.eigvals(w_rec)).max()),
        largest_singular_value=None if w_rec is None else float(np.linalg.norm(w_rec, 2)),
        score=None if data is None else model.score(data),
        loss=loss,
        constant_loss=constant,
        judgement=NOT_JUDGED if data is None else judge([reading], q_range, loss, constant),
    )


def _gone_through(model: Model | Portable, seen: Sequences, engine: Engine) -> Flow | GatedFlow:
    """The sequences, gone forward through the network and back from their last step."""
    if isinstance(model, Model):
        u, t, starts = model.scaling.scaled(seen).padded(dtype=model.net.dtype)
        return backpropagate(model.net, u, t, engine, starts).of_last_step()
    u, t, starts = model.scaling.scaled(seen).padded(dtype=np.float64)
    return gated_flow(model, u, t[-1] if model.per_step else t, starts)


def curves(flow: Flow | GatedFlow, lags: Array) -> tuple[Array, Array]:
    """At each lag, of the sequences that are so long: log10 of ‖δ(T−lag)‖ / ‖δ(T)‖, and slow Q.

    Norms are means over the sequences, as in Eq. 14; slow Q is as in `gradsieve.change.slow_factor`
    with this lag as its horizon.
    """
    deltas, exponents = flow.scaled_deltas.astype(np.float64), flow.exponents
    starts = np.zeros(deltas.shape[1]) if flow.starts is None else flow.starts
    norms = np.linalg.norm(deltas, axis=2)
    ratio, slow = np.full(len(lags), -math.inf), np.full(len(lags), math.inf)
    for position, lag in enumerate(lags):
        first = flow.length - 1 - int(lag)
        long_enough = starts <= first
        near = norms[-1, long_enough]
        if not near.any():
            slow[position] = math.nan
            continue
        far = norms[first, long_enough].mean()
        if far > 0:
            shift = (exponents[first] - exponents[-1]) * math.log10(2)
            ratio[position] = math.log10(far / near.mean()) + shift
        steps = window_steps(int(lag), WINDOW)
        window = slice(first, first + steps)
        weights = np.sin(np.pi * (np.arange(steps) + 0.5) / steps) ** 2
        unit = int(exponents[window].max())
        weights = np.ldexp(weights / weights.sum(), exponents[window] - unit)
        kept = np.linalg.norm(np.tensordot(weights, deltas[window][:, long_enough], 1), axis=1)
        counts = (near > 0) & (kept > 0)
        if counts.any():
            shift = (exponents[-1] - unit) * math.log10(2)
            slow[position] = np.log10(near[counts] / kept[counts]).mean() + shift
    return ratio, slow


def _constant(t: Array) -> float:
    """The loss of the best constant guess of these targets."""
    if t.ndim == 1:
        counts = np.bincount(t)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())
    return float(0.5 * t.astype(np.float64).var(axis=0).sum())


def _sample(model: Model | Portable, data: Sequences, generator: np.random.Generator) -> Sequences:
    """So many of the sequences that memory suffices, with the network's numbers of classes."""
    most = max(1, min(SEQUENCES, STATES // (int(data.lengths.max()) * model.hidden)))
    seen = dataclasses.replace(data, targets=model.targets_of(data), classes=model.classes)
    if data.count <= most:
        return seen
    return seen.subset(np.sort(generator.permutation(data.count)[:most]))


def _noise(model: Model | Portable, steps: int, generator: np.random.Generator) -> Sequences:
    if steps < 2:
        raise InvalidArgument(f"steps is {steps}; it must be at least 2")
    scaling, outputs = model.scaling, model.outputs_each
    noise = generator.standard_normal((SEQUENCES, steps, model.inputs))
    sequences = list(noise * scaling.spread + scaling.mean)
    count = SEQUENCES * steps if model.per_step else SEQUENCES
    if model.classes is not None:
        targets = generator.integers(0, outputs, count)
        return from_arrays(sequences, targets, model.classes, model.per_step)
    wanted = scaling.outputs(generator.standard_normal((count, outputs)))
    return from_arrays(sequences, wanted, None, model.per_step)
