"""Whether learning goes on: told by the signal's own past, whatever its unit."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsieve.sieve import Learning
from gradsieve.sieve.learning import FAST, LOW, RECENT, SLOW


def told(signals, steps=1):
    learning = Learning()
    for signal in signals:
        learning.observe(signal, steps)
    return learning


def test_a_signal_that_stays_has_stopped_and_is_not_done():
    staying = told([1.0] * 3000)
    assert staying.stopped
    assert not staying.done


def test_a_signal_that_falls_goes_on():
    falling = [math.exp(-count / 2000) for count in range(4000)]
    for count in range(SLOW, 4000, 200):
        assert not told(falling[:count]).stopped


def test_a_signal_that_rises_has_stopped():
    assert told([1 + count / 1000 for count in range(2000)]).stopped


def test_a_signal_far_below_its_highest_level_is_done_and_one_that_comes_back_is_not():
    learned = [1.0] * SLOW + [0.5 * LOW] * 3000
    assert told(learned).done
    assert not told([*learned, *[1.0] * 2000]).done


@given(
    st.lists(st.floats(0.1, 10), min_size=1, max_size=600),
    st.floats(1e-6, 1e6),
)
def test_the_unit_of_the_signal_does_not_matter(signals, unit):
    one, other = told(signals), told([unit * signal for signal in signals])
    assert other.fast == pytest.approx(unit * one.fast)
    assert other.slow == pytest.approx(unit * one.slow)
    assert other.highest == pytest.approx(unit * one.highest)


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=300))
def test_the_means_lie_within_what_was_seen(signals):
    learning = told(signals)
    for mean in (learning.fast, learning.slow, learning.highest):
        assert min(signals) * (1 - 1e-9) <= mean <= max(signals) * (1 + 1e-9)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_signal_that_is_not_finite_is_none(wrong):
    assert told([1.0, wrong, 2.0]) == told([1.0, 2.0])


def test_seen_every_tenth_update_it_is_told_the_same():
    """Around an optimizer that looks seldom, updates count and not looks."""
    falling = [math.exp(-count / 2000) for count in range(6000)]
    each, tenth = told(falling), told(falling[9::10], steps=10)
    assert tenth.updates == each.updates
    assert tenth.fast == pytest.approx(each.fast, rel=0.02)
    assert tenth.slow == pytest.approx(each.slow, rel=0.02)
    assert tenth.stopped == each.stopped


def test_reach_counts_as_one_that_can_be_lost_for_a_while_after_it_was_in_range():
    learning = Learning()
    assert not learning.reached_lately
    learning.note_range(True, 1)
    assert learning.reached_lately
    learning.note_range(False, RECENT - 1)
    assert learning.reached_lately
    learning.note_range(False, 1)
    assert not learning.reached_lately
    learning.note_range(True, 10)
    assert learning.reached_lately


def test_the_slow_mean_remembers_longer():
    stepped = told([1.0] * 3000 + [0.0] * 600)
    assert stepped.fast < stepped.slow
    assert FAST < SLOW
