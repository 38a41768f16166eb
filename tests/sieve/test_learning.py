"""Whether learning goes on: told by the cosine of successive gradients, which has no unit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsieve.sieve import Learning
from gradsieve.sieve.learning import AGREE, MEMORY, PATIENCE, STAYS


def told(cosines):
    learning = Learning()
    for cosine in cosines:
        learning.observe(cosine)
    return learning


def gradients(common, count=2000, size=200, seed=0):
    """Gradients of unit noise with this much in common."""
    generator = np.random.default_rng(seed)
    shared = generator.standard_normal(size) * common
    return shared + generator.standard_normal((count, size))


def cosines(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return (unit[1:] * unit[:-1]).sum(axis=1)


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_a_plateau(seed):
    found = cosines(gradients(0.0, seed=seed))
    assert not any(told(found[:count]).goes_on for count in range(1, 2000, 50))


@pytest.mark.parametrize("seed", range(20))
def test_a_common_part_of_two_thirds_of_the_noise_is_learning(seed):
    assert told(cosines(gradients(2 / 3, seed=seed))[:PATIENCE]).goes_on


def test_gradients_that_point_against_each_other_are_no_noise():
    assert told([-0.3] * MEMORY).goes_on


def test_a_plateau_after_learning_is_noticed_within_twice_the_memory():
    assert told([0.3] * 1000).goes_on
    assert not told([0.3] * 1000 + [0.0] * (2 * MEMORY)).goes_on


@given(st.floats(AGREE + 1e-3, 1.0), st.integers(1, 500))
def test_cosines_that_are_not_known_change_nothing_but_the_count(cosine, missing):
    one, other = told([cosine] * 300), told([cosine] * 300 + [math.nan] * missing)
    assert one.agreement == other.agreement
    assert other.updates == 300 + missing


@pytest.mark.parametrize("began", [True, False])
def test_only_a_network_without_reach_is_given_time(began):
    learning = Learning()
    learning.note_range(began)
    learning.note_range(not began)
    assert learning.has_time != began
    for _ in range(PATIENCE):
        learning.observe(0.0)
    assert not learning.has_time


def looked(learning, in_range, times=1):
    for _ in range(times):
        learning.note_range(in_range)
    return learning


def test_reach_is_held_from_a_plateau_without_it_and_not_before():
    assert not looked(Learning(), True, 1000).held
    assert not looked(told([0.3] * 1000), False, 1000).held
    assert not looked(told([0.0] * (PATIENCE - 1)), False, 1000).held
    assert looked(told([0.0] * PATIENCE), False).held
    lost = looked(Learning(), True)
    assert looked(lost, False).held


def test_it_is_held_also_while_learning_goes_on_until_it_stays():
    learning = looked(told([0.0] * PATIENCE), False)
    for _ in range(1000):
        learning.observe(0.3)
    assert looked(learning, False, 1000).held
    assert looked(learning, True, STAYS - 1).held
    looked(learning, False)
    assert not looked(learning, True, STAYS).held


def test_on_a_plateau_it_is_held_however_long_it_stays():
    assert looked(looked(told([0.0] * PATIENCE), False), True, 10 * STAYS).held
