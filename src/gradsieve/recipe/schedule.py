"""How the learning rate changes during a run: warm-up, cool-down and roll-back."""

from __future__ import annotations

from dataclasses import dataclass

from gradsieve.settings import Settings, setting


@dataclass(frozen=True)
class Schedule(Settings):
    """Factors of the learning rate over the epochs."""

    warm_up: float | None = setting(
        None,
        "Share of the epochs over which the rate rises from zero, at the beginning and where"
        " sequences become longer.",
        above=0,
        most=1,
        none=True,
    )
    cool_down: float | None = setting(
        None,
        "Last share of the epochs over which the rate falls to zero.",
        above=0,
        most=1,
        none=True,
    )
    roll_back: float | None = setting(
        None,
        "Returns to the weights of the lowest loss, at half the rate, once the median loss is more"
        " than this many times as large, e.g. 6.",
        above=1,
        none=True,
    )

    def rate(self, rate: float, epoch: int, epochs: int, since: int) -> float:
        """The rate of an epoch counted from 0; `since`: epochs at this length of sequences."""
        if self.warm_up is not None:
            rate *= min(1.0, (since + 1) / (self.warm_up * epochs))
        if self.cool_down is not None:
            rate *= min(1.0, (epochs - epoch) / (self.cool_down * epochs))
        return rate
