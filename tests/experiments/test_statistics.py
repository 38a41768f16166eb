"""Intervals and the paired test, against enumeration and known values."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import permutation_test

from gradsieve.experiments.statistics import bootstrap_interval, paired_p_value


def test_ten_differences_of_one_sign_have_the_smallest_possible_p_value():
    first, second = [0.9] * 10, [0.1 + 0.01 * place for place in range(10)]
    assert paired_p_value(first, second) == pytest.approx(2 / 2**10)


def test_equal_values_have_a_p_value_of_one():
    assert paired_p_value([0.3, 0.5, 0.7], [0.3, 0.5, 0.7]) == 1


def test_the_paired_test_agrees_with_scipy():
    generator = np.random.default_rng(0)
    first, second = generator.random(8), generator.random(8) + 0.2
    other = permutation_test(
        (first - second,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert paired_p_value(first, second) == pytest.approx(other.pvalue)


def test_the_paired_test_counts_every_sign_pattern():
    differences = [0.3, -0.1, 0.2, 0.05]
    observed = abs(sum(differences))
    patterns = list(product((-1, 1), repeat=4))
    extreme = [
        abs(sum(sign * value for sign, value in zip(pattern, differences, strict=True)))
        >= observed - 1e-12
        for pattern in patterns
    ]
    assert paired_p_value(differences, [0] * 4) == pytest.approx(sum(extreme) / len(patterns))


def test_the_interval_covers_the_mean_as_often_as_it_says():
    generator = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        low, high = bootstrap_interval(generator.normal(size=30))
        covered += low <= 0 <= high
    assert 0.87 <= covered / 200 <= 0.99


def test_the_interval_is_the_same_on_every_call():
    assert bootstrap_interval([0.1, 0.5, 0.9]) == bootstrap_interval([0.1, 0.5, 0.9])
