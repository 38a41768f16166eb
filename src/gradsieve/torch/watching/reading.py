"""The reading of one look: a flat dict of numbers for any logger, and the evidence behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradsieve.judgement import Judgement, LayerReading


@dataclass(frozen=True)
class LayerLook:
    """One layer, in one direction, at one look."""

    seen: LayerReading
    Q: float  # Eq. 14's: of the norms alone
    curve: list[float]  # log10 of the mean gradient norm at lag 0, 1, 2 …
    slow_curve: dict[int, float]  # slow Q over a few lags
    shares: dict[str, float] = field(default_factory=dict)  # of the weights' movement, by gate

    @property
    def name(self) -> str:
        return self.seen.name

    def values(self) -> dict[str, float]:
        """Its numbers by name; curves at lags 1, 2, 5, 10, 20 …"""
        found = {"Q": self.Q, "slow_Q": self.seen.slow_Q, "reach": float(self.seen.reach)}
        found |= {f"saturated/{gate}": share for gate, share in self.seen.saturated.items()}
        found |= {f"share/{gate}": share for gate, share in self.shares.items()}
        found |= {f"gradient/lag_{lag}": value for lag, value in self.at_lags().items()}
        return found

    def at_lags(self) -> dict[int, float]:
        """log10 of the gradient's norm over that at the last step, at lags 1, 2, 5, 10, 20 …"""
        lags = (base * 10**power for power in range(7) for base in (1, 2, 5))
        return {lag: self.curve[lag] - self.curve[0] for lag in lags if lag < len(self.curve)}


class Reading(dict[str, float]):
    """Numbers by name.

    Attributes:
        layers: each layer's look, with the whole curve of the gradient against the lag.
        judgement: symptoms, evidence and advice.
    """

    def __init__(
        self,
        values: dict[str, float],
        layers: list[LayerLook],
        judgement: Judgement,
    ) -> None:
        super().__init__(values)
        self.layers = layers
        self.judgement = judgement
