"""The learning rate over the epochs: warm-up, cool-down, and both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs


def rates(schedule, epochs=10, since=lambda epoch: epoch):
    return [schedule.rate(1.0, epoch, epochs, since(epoch)) for epoch in range(epochs)]


def test_the_rate_falls_over_the_cool_down_and_only_then():
    assert set(rates(gs.Schedule())) == {1.0}
    assert rates(gs.Schedule(cool_down=0.5)) == pytest.approx(
        [1, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2]
    )


def test_the_rate_rises_over_the_warm_up_and_both_may_meet():
    assert rates(gs.Schedule(warm_up=0.4)) == pytest.approx([0.25, 0.5, 0.75, *[1] * 7])
    both = rates(gs.Schedule(warm_up=0.4, cool_down=1.0))
    assert both[:5] == pytest.approx([0.25, 0.45, 0.6, 0.7, 0.6])


def test_the_rate_rises_again_wherever_sequences_become_longer():
    begin = (0, 4, 7)
    found = rates(
        gs.Schedule(warm_up=0.2),
        since=lambda epoch: epoch - max(first for first in begin if first <= epoch),
    )
    assert found == [0.5, 1, 1, 1, 0.5, 1, 1, 0.5, 1, 1]


@given(
    warm_up=st.none() | st.floats(0.01, 1),
    cool_down=st.none() | st.floats(0.01, 1),
    epochs=st.integers(1, 300),
)
def test_no_rate_is_zero_or_above_the_given_one(warm_up, cool_down, epochs):
    assert all(0 < rate <= 1 for rate in rates(gs.Schedule(warm_up, cool_down), epochs))
