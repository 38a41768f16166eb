"""The step: μ v − α g, with the gradient scaled by its own mean square, and then clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gradsieve.errors import InvalidArgument
from gradsieve.settings import Settings, setting

AUTO: Literal["auto"] = "auto"


@dataclass(frozen=True)
class Optimiser(Settings):
    """Gradient descent with momentum, RMSprop's scaling and clipping.

    The gradient is *summed* over the minibatch, as in the author's code.
    """

    learning_rate: float = setting(
        1e-5, "Learning rate, for the gradient summed over the minibatch.", above=0
    )
    momentum: float = setting(0.9, "Share of the last update in the next.", least=0, below=1)
    reset_velocity: bool = setting(
        True, "Whether the velocity starts from zero in each epoch.", choices=(True, False)
    )
    clip: float | Literal["auto"] | None = setting(
        None,
        "Largest norm of the gradient, after its scaling; auto is AutoClip's: a quantile of all"
        " norms so far.",
        above=0,
        none=True,
        word=AUTO,
    )
    clip_quantile: float = setting(
        0.1, "With clip=auto: the share of norms that the threshold lies above.", above=0, below=1
    )
    rms_decay: float | None = setting(
        None,
        "Memory of the mean square that scales each weight's gradient (RMSprop), e.g. 0.999.",
        above=0,
        below=1,
        none=True,
    )
    rms_bound: float | None = setting(
        None,
        "Caps a gradient's norm at this many times the running average before it enters the mean"
        " square, e.g. 10.",
        least=1,
        none=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rms_bound is not None and self.rms_decay is None:
            raise InvalidArgument(
                f"rms_bound is {self.rms_bound}, and rms_decay None; it bounds the mean square, so "
                "it needs an rms_decay (for example 0.999)"
            )
