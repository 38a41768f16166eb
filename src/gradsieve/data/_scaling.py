"""Scaling to zero mean and unit spread, learned on the training part and kept with the network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gradsieve.data._sequences import Sequences
from gradsieve.errors import InvalidFile
from gradsieve.network import Array


@dataclass(frozen=True, eq=False)
class Scaling:
    """u' = (u - mean) / spread for inputs and, in regression, for targets."""

    mean: Array  # (I,)
    spread: Array  # (I,)
    target_mean: Array | None = None  # (O,)
    target_spread: Array | None = None

    @classmethod
    def of(cls, data: Sequences) -> Self:
        """Learn from these sequences; a constant column keeps its unit."""
        target_mean = target_spread = None
        if data.classes is None:
            target_mean, target_spread = _moments(data.targets)
        return cls(*_moments(data.values), target_mean, target_spread)

    @classmethod
    def identity(cls, inputs: int) -> Self:
        return cls(np.zeros(inputs), np.ones(inputs))

    def inputs(self, values: Array) -> Array:
        return (values - self.mean) / self.spread

    def outputs(self, values: Array) -> Array:
        """Network outputs in the units of the data."""
        if self.target_mean is None or self.target_spread is None:
            return values
        return values * self.target_spread + self.target_mean

    def scaled(self, data: Sequences) -> Sequences:
        """The same sequences in the units of the network."""
        targets = data.targets
        if self.target_mean is not None:
            targets = (targets - self.target_mean) / self.target_spread
        return replace(data, values=self.inputs(data.values), targets=targets)

    def as_json(self) -> dict[str, Any]:
        return {
            name: None if value is None else value.tolist() for name, value in vars(self).items()
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any], inputs: int, outputs: int) -> Self:
        fields: dict[str, Array | None] = {}
        for name, size in (
            ("mean", inputs),
            ("spread", inputs),
            ("target_mean", outputs),
            ("target_spread", outputs),
        ):
            value = saved.get(name)
            if value is None and name.startswith("target"):
                fields[name] = None
                continue
            try:
                array = np.array(value, dtype=np.float64)
            except (TypeError, ValueError):
                array = np.zeros(0)
            positive = not name.endswith("spread") or bool((array > 0).all())
            if array.shape != (size,) or not np.isfinite(array).all() or not positive:
                raise InvalidFile(f"the scaling's {name} is not {size} numbers that can scale")
            fields[name] = array
        if (fields["target_mean"] is None) != (fields["target_spread"] is None):
            raise InvalidFile("the scaling has one of target_mean and target_spread, not both")
        return cls(**fields)  # type: ignore[arg-type]


def _moments(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation by column, without overflow; a constant column keeps its unit.

    NaN does not count; a column of nothing else has mean 0.
    """
    values = np.where(np.isnan(values).all(axis=0), 0.0, values)
    largest = np.nanmax(np.abs(values), axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    mean = np.nanmean(values / unit, axis=0) * unit
    spread = np.nanstd((values - mean) / unit, axis=0) * unit
    constant = spread <= 1e-12 * unit
    # A device subtracts in float32: with a mean that float32 holds, it subtracts the same one.
    with np.errstate(over="ignore"):
        rounded = mean.astype(np.float32).astype(np.float64)
    mean = np.where(np.isfinite(rounded) & ~constant, rounded, mean)
    return mean, np.where(constant, 1.0, spread)
