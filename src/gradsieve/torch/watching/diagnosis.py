"""A verdict in plain words on what `gst.watch` has seen, with the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gradsieve.errors import InvalidArgument

MOSTLY = 0.5  # a layer is saturated when more than this share of a gate is at an end
CLOSE = 0.02  # a loss is that of a constant guess when it is less than this part below it


@dataclass(frozen=True)
class LayerReading:
    """What was seen of one layer in one direction."""

    name: str
    Q: float
    reach: int
    longest: int  # the largest lag there is
    saturated: dict[str, float]


@dataclass(frozen=True)
class Diagnosis:
    """`verdicts` in the order of weight; "healthy" stands alone."""

    verdicts: tuple[str, ...]
    evidence: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.verdicts) + ": " + "; ".join(self.evidence)


def diagnose(
    layers: Sequence[LayerReading],
    q_range: tuple[float, float],
    losses: Sequence[float] = (),
    constant_loss: float | None = None,
) -> Diagnosis:
    """Vanishing, exploding, saturated, stuck at the loss of a constant guess, or healthy."""
    found: list[tuple[str, str]] = []
    lowest, highest = q_range
    for layer in layers:
        if highest < layer.Q:
            found.append(("vanishing", _size(layer, "smaller")))
        elif lowest > layer.Q:
            found.append(("exploding", _size(layer, "larger")))
        elif math.isnan(layer.Q):
            found.append(("no gradient", f"{layer.name}: no gradient at its last step"))
        for gate, share in layer.saturated.items():
            if share > MOSTLY:
                found.append(
                    ("saturated", f"{layer.name}: {share:.0%} of {gate} within 1 % of an end")
                )
    stuck = _stuck(losses, constant_loss)
    if stuck is not None:
        found.append(("stuck at the loss of a constant guess", stuck))
    if not found:
        seen = ", ".join(f"{layer.name}: Q {layer.Q:.2f}" for layer in layers)
        return Diagnosis(("healthy",), (f"{seen}, inside {lowest:g} … {highest:g}",))
    verdicts = tuple(dict.fromkeys(verdict for verdict, _ in found))
    return Diagnosis(verdicts, tuple(evidence for _, evidence in found))


def _size(layer: LayerReading, word: str) -> str:
    factor = "beyond measure" if math.isinf(layer.Q) else f"10^{abs(layer.Q):.1f} times"
    return (
        f"{layer.name}: the gradient {layer.longest} steps back is {factor} {word} than the last "
        f"one (Q {layer.Q:.2f}); inside the range it reaches {layer.reach} steps"
    )


def _stuck(losses: Sequence[float], constant_loss: float | None) -> str | None:
    if constant_loss is None or not losses:
        return None
    mean = sum(losses) / len(losses)
    if mean < (1 - CLOSE) * constant_loss:
        return None
    return (
        f"mean loss {mean:.4g} of {len(losses)} readings; a constant guess has {constant_loss:.4g}"
    )


def constant_loss(targets: Tensor) -> float:
    """The mean loss of the best constant guess: cross-entropy or, of values, squared error."""
    if targets.numel() == 0:
        raise InvalidArgument("targets is empty; it must hold at least one target")
    if targets.is_floating_point():
        rows = targets.reshape(targets.shape[0], -1).double()
        return float(rows.var(0, unbiased=False).mean())
    counts = torch.bincount(targets.reshape(-1)).double()
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * shares.log()).sum())
