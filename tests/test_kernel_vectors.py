"""What a training step does with whole weight vectors, against NumPy in double precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsieve.kernel import move, norm, observe, propose, scaled
from gradsieve.kernel.vectors import products

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
vectors = st.tuples(
    st.integers(0, 100), st.integers(0, 7), st.sampled_from([np.float32, np.float64])
)


def drawn(size, offset, dtype, seed=0):
    """A vector that begins anywhere in memory, not only where a register would like it to."""
    values = np.random.default_rng(seed).normal(size=size + offset).astype(dtype)
    return values[offset:]


@given(vectors)
def test_the_norm_is_that_of_double_precision(vector):
    values = drawn(*vector)
    assert norm(values) == pytest.approx(np.linalg.norm(values.astype(np.float64)), rel=1e-14)


def test_the_norm_of_a_float32_vector_does_not_overflow():
    assert norm(np.full(100, 3e38, np.float32)) == pytest.approx(3e39)


@given(vectors)
def test_products_are_those_of_double_precision(vector):
    one, other = (drawn(*vector, seed=seed).astype(np.float64) for seed in (0, 1))
    inner, square = products(*(drawn(*vector, seed=seed) for seed in (0, 1)))
    assert inner == pytest.approx(one @ other, rel=1e-12, abs=1e-12)
    assert square == pytest.approx(one @ one, rel=1e-12)


def test_products_of_vectors_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match="other has shape"):
        products(np.zeros(3), np.zeros(4))


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_norm_of_what_is_not_finite_is_not(dtype, bad):
    values = drawn(33, 0, dtype)
    values[17] = bad
    assert not np.isfinite(norm(values))


@given(vectors)
def test_a_proposal_is_momentum_times_velocity_minus_rate_times_gradient(vector):
    velocity, gradient = drawn(*vector), drawn(*vector, seed=1)
    proposal = propose(0.9, velocity, 1e-3, gradient)
    assert proposal.dtype == velocity.dtype
    expected = 0.9 * velocity.astype(np.float64) - 1e-3 * gradient.astype(np.float64)
    np.testing.assert_allclose(proposal, expected, rtol=1e-6, atol=1e-9)


@given(vectors)
def test_a_move_adds_the_update_in_place(vector):
    weights, update = drawn(*vector), drawn(*vector, seed=1)
    expected = weights + update
    assert move(weights, update)
    np.testing.assert_array_equal(weights, expected)


@every_dtype
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("position", [0, 15, 31, 36])
def test_a_move_to_what_is_not_finite_is_not_made(dtype, bad, position):
    weights, update = drawn(37, 0, dtype), drawn(37, 0, dtype, seed=1)
    before = weights.copy()
    update[position] = bad
    assert not move(weights, update)
    np.testing.assert_array_equal(weights, before)
    weights[:] = update[:] = np.finfo(dtype).max  # each finite, their sum is not
    assert not move(weights, update)


@given(vectors)
def test_the_mean_square_is_a_running_one_in_double_precision(vector):
    gradients = [drawn(*vector, seed=seed) for seed in range(3)]
    mean_square = np.zeros(vector[0])
    expected = np.zeros(vector[0])
    for gradient in gradients:
        observe(0.9, gradient, mean_square)
        expected = 0.9 * expected + (1 - 0.9) * gradient.astype(np.float64) ** 2
    np.testing.assert_allclose(mean_square, expected, rtol=1e-12)


@given(vectors)
def test_scaling_divides_by_the_root_of_the_mean_square(vector):
    gradient = drawn(*vector)
    mean_square = drawn(vector[0], vector[1], np.float64, seed=1) ** 2
    found = scaled(gradient, mean_square, 0.75, 1e-3)
    assert found.dtype == gradient.dtype
    expected = gradient.astype(np.float64) / (np.sqrt(mean_square / 0.75) + 1e-3)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [1e-30, 1.0, 3e38])
def test_the_square_of_a_float32_neither_overflows_nor_vanishes(size):
    gradient, mean_square = np.full(5, size, np.float32), np.zeros(5)
    observe(0.5, gradient, mean_square)
    np.testing.assert_allclose(scaled(gradient, mean_square, 0.5, 0.0), 1, rtol=1e-6)


def test_vectors_that_do_not_fit_raise():
    vector = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match=r"gradient has shape \(3\); it must be \(4\)"):
        propose(0.9, vector, 1.0, vector[:3])
    with pytest.raises(ValueError, match=r"update has shape \(3\); it must be \(4\)"):
        move(vector, vector[:3])
    for call in (
        lambda: observe(0.9, vector, np.zeros(3)),
        lambda: scaled(vector, np.zeros(3), 1.0, 0.0),
    ):
        with pytest.raises(ValueError, match=r"mean_square has shape \(3\); it must be \(4\)"):
            call()
    for call in (
        lambda: observe(0.9, vector, vector),
        lambda: norm(vector[::2]),
        lambda: norm(np.zeros((2, 2), np.float32)),
        lambda: norm([1.0]),
        lambda: propose(0.9, vector, 1.0, vector.astype(np.float64)),
        lambda: move(vector, vector.astype(np.float64)),
    ):
        with pytest.raises(TypeError):
            call()
    vector.flags.writeable = False
    with pytest.raises(TypeError):
        move(vector, vector)
