"""How a network begins: what its recurrent matrix is, and what the seed decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.start import orthogonal

STARTS = ("orthogonal", "identity", "gaussian")


@given(hidden=st.integers(1, 40), seed=st.integers(0, 2**32), gain=st.floats(0.1, 3))
def test_an_orthogonal_start_keeps_every_norm_times_the_gain(hidden, seed, gain):
    w = gs.Start("orthogonal", gain=gain).draw(2, hidden, 3, seed)["w_rec"]
    np.testing.assert_allclose(w @ w.T, gain**2 * np.eye(hidden), atol=1e-12 * gain**2 * hidden)


def test_orthogonal_starts_are_spread_evenly_over_the_orthogonal_matrices():
    """Haar measure: every entry has mean 0 and variance 1/n, and reflections are half of them."""
    draws = np.array([gs.Start("orthogonal").draw(1, 3, 1, seed)["w_rec"] for seed in range(3000)])
    far = 5 / np.sqrt(len(draws))  # standard errors, of numbers of variance below 1
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=far * np.sqrt(1 / 3))
    np.testing.assert_allclose((draws**2).mean(axis=0), 1 / 3, atol=far * 0.3)
    assert abs(np.sign(np.linalg.det(draws)).mean()) < far
    plain_qr = np.array(
        [np.linalg.qr(w)[0] for w in np.random.default_rng(0).normal(size=(300, 3, 3))]
    )
    assert np.abs(plain_qr.mean(axis=0)).max() > 0.3, "without its signs QR is not even"


def test_the_orthogonal_factor_is_that_of_the_matrix_with_a_positive_diagonal():
    normal = np.random.default_rng(1).normal(size=(6, 6))
    upper = orthogonal(normal).T @ normal
    np.testing.assert_allclose(np.tril(upper, -1), 0, atol=1e-12)
    assert (np.diagonal(upper) > 0).all()


@pytest.mark.parametrize("name", STARTS)
def test_the_seed_decides_every_weight_of_every_start(name):
    first, same, other = (
        gs.SRN.random(3, 8, 2, start=name, seed=seed, bias_spread=0.3) for seed in (7, 7, 8)
    )
    assert np.array_equal(first.flat, same.flat)
    assert not np.array_equal(first.w_in, other.w_in)
    assert not np.array_equal(first.b, other.b)
    assert np.array_equal(first.w_rec, other.w_rec) == (name == "identity")


@given(seed=st.integers(0, 2**32))
def test_starts_of_one_seed_differ_in_the_recurrent_matrix_alone(seed):
    nets = [gs.SRN.random(3, 8, 2, start=name, seed=seed) for name in STARTS]
    for net in nets[1:]:
        for name in ("w_in", "b", "w_out", "b_out"):
            assert np.array_equal(getattr(net, name), getattr(nets[0], name))


def test_a_start_and_its_name_draw_the_same_network():
    named = gs.SRN.random(2, 5, 2, start="identity", gain=0.9, seed=3, dtype=np.float64)
    given_whole = gs.SRN.random(
        2, 5, 2, start=gs.Start("identity", gain=0.9), seed=3, dtype=np.float64
    )
    assert np.array_equal(named.flat, given_whole.flat)
    assert np.array_equal(named.w_rec, 0.9 * np.eye(5))
