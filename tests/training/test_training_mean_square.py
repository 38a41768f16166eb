"""The mean square that gradients are scaled by, and what one that explodes may do to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsieve.training.mean_square import MeanSquare

DECAY = 0.99


def observed(gradients, bound=None):
    square = MeanSquare(len(gradients[0]), DECAY, bound)
    for gradient in gradients:
        square.observe(np.asarray(gradient, dtype=np.float32))
    return square


def usual_gradients(count=200, size=20, seed=0):
    return np.random.default_rng(seed).standard_normal((count, size))


def usual_length(square):
    return np.sqrt(square.values.sum() / (1 - DECAY**square.seen))


def test_a_gradient_within_the_bound_counts_as_it_is():
    gradients = usual_gradients()
    assert np.array_equal(observed(gradients, bound=10).values, observed(gradients).values)


@pytest.mark.parametrize("times", [1e2, 1e5, 1e9])
def test_one_that_explodes_counts_as_one_of_the_bounds_length_however_large_it_is(times):
    gradients = usual_gradients()
    bound, before = 10, usual_length(observed(gradients))
    outlier = np.linspace(-1, 1, 20)
    outlier *= before / np.linalg.norm(outlier)
    after = observed([*gradients, times * outlier], bound)
    expected = observed([*gradients, bound * outlier])
    np.testing.assert_allclose(after.values, expected.values, rtol=1e-5)
    assert usual_length(observed([*gradients, times * outlier])) > 0.09 * times * before


def test_gradients_that_stay_larger_become_the_usual_ones():
    gradients = usual_gradients()
    grown = observed([*gradients, *1e4 * usual_gradients(seed=1)], bound=10)
    assert usual_length(grown) == pytest.approx(1e4 * np.sqrt(20), rel=0.3)


def test_after_nothing_but_zeros_a_gradient_counts_as_it_is():
    first = np.ones(4)
    assert np.array_equal(
        observed([0 * first, first], bound=2).values, observed([0 * first, first]).values
    )


@given(st.floats(1, 100), st.floats(1e-3, 1e6))
def test_no_gradient_moves_the_usual_length_by_more_than_the_bound_allows(bound, times):
    gradients = usual_gradients(count=300, size=5)
    before = usual_length(observed(gradients))
    after = usual_length(observed([*gradients, times * gradients[0]], bound))
    weight = (1 - DECAY) / (1 - DECAY**301)
    assert after <= before * np.sqrt(1 + weight * (bound**2 - 1)) * (1 + 1e-5)


@pytest.mark.parametrize(("bound", "holds"), [(3, True), (10, False)])
def test_a_bound_holds_while_fewer_than_one_gradient_in_its_square_explode(bound, holds):
    share = 1 / 20
    gradients = usual_gradients(count=4000)
    gradients[10 :: round(1 / share)] *= 1e6
    length = usual_length(observed(gradients, bound)) / np.sqrt(20)
    if holds:  # S = (1 - f) g² + f b² S
        assert length == pytest.approx(np.sqrt((1 - share) / (1 - share * bound**2)), rel=0.2)
    else:
        assert length > 1e4
