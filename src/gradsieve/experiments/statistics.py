"""Ten networks against the same ten networks: intervals and a paired test that assume nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

RESAMPLES = 10_000
EXACT_UP_TO = 14  # pairs: 2**14 sign patterns


def bootstrap_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean; the same on every call."""
    sample = np.asarray(values, dtype=np.float64)
    generator = np.random.Generator(np.random.PCG64(0))
    means = sample[generator.integers(0, len(sample), (RESAMPLES, len(sample)))].mean(axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def paired_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided sign-flip permutation test of a zero mean difference between paired values.

    Exact for up to 14 pairs: under the null each difference is as likely with either sign.
    """
    differences = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    observed = abs(differences.mean())
    if len(differences) <= EXACT_UP_TO:
        signs = np.array(list(product((-1, 1), repeat=len(differences))), dtype=np.float64)
    else:
        generator = np.random.Generator(np.random.PCG64(0))
        signs = generator.choice((-1.0, 1.0), (RESAMPLES, len(differences)))
    means = np.abs(signs @ differences) / len(differences)
    return float((means >= observed - 1e-12).mean())
