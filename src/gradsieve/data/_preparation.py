"""The preparation of raw series: chosen once, and stored with the network.

The defaults refuse, so that no value is made up silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gradsieve.settings import Settings, setting

Missing = Literal["refuse", "mean", "last"]
Spacing = Literal["refuse", "ignore", "resample"]
Lengths = Literal["keep", "refuse"]


@dataclass(frozen=True)
class Preparation(Settings):
    """Missing inputs, times that are not equally spaced, and unequal lengths.

    >>> Preparation().missing, Preparation(spacing="resample").spacing
    ('refuse', 'resample')
    """

    missing: Missing = setting(
        "refuse",
        "Value of a missing input: its mean in training, or its last value in the series.",
        choices=get_args(Missing),
    )
    spacing: Spacing = setting(
        "refuse",
        "Times that are not equally spaced: ignore takes rows as steps, resample interpolates.",
        choices=get_args(Spacing),
    )
    lengths: Lengths = setting(
        "keep",
        "Whether series may differ in length; they are neither cut nor padded.",
        choices=get_args(Lengths),
    )
    interval: float | None = setting(
        None, "Time from step to step; None is the file's median.", above=0, none=True
    )
