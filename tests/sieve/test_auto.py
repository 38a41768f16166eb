"""Policy "auto": as hold where it is needed, and nothing where it is not."""

import math

import pytest
from evidences import Going, slopes
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.sieve import Evidence, Need, Reason

AUTO = gs.Sieve("auto", (-2, 1.5)).at_work()
out_of_range = st.floats(1.6, 50) | st.floats(-50, -2.1)
HELD, FREE = Going(held=1), Going(held=0)


@given(Q=out_of_range, slope=slopes)
def test_where_reach_has_to_be_held_it_decides_as_hold_does(Q, slope):
    assert AUTO.need(Evidence(Q, HELD)) is Need.SLOPE
    evidence = Evidence(Q, HELD, slope=slope)
    hold = gs.Sieve("hold", (-2, 1.5), steer_rate=AUTO.pull(Q)).at_work()
    assert AUTO.decide(evidence) == hold.decide(evidence)


@given(Q=out_of_range)
def test_where_it_has_not_it_leaves_the_update_alone_and_says_so(Q):
    evidence = Evidence(Q, FREE)
    assert AUTO.need(evidence) is Need.NOTHING
    decision = AUTO.decide(evidence)
    assert (decision.verdict.keep, decision.verdict.reason) == (True, Reason.LEARNING)
    assert decision.correction == 0


@given(Q=st.floats(-50, 50))
def test_it_looks_seldom_until_reach_has_to_be_held(Q):
    held, free = Evidence(Q, HELD), Evidence(Q, FREE)
    assert AUTO.looks_in(held) == 1
    assert 1 < AUTO.looks_in(free) == AUTO.looks_in(None)
    assert gs.Sieve("auto", every=3).at_work().looks_in(held) == 3


@given(Q=st.floats(-400, 400))
def test_the_pull_grows_with_the_distance_from_the_range_and_is_bounded(Q):
    rate = gs.Sieve().steer_rate
    assert rate <= AUTO.pull(Q) <= 1
    assert AUTO.pull(3.4) == AUTO.pull(-3.9) == rate
    assert AUTO.pull(13.5) == pytest.approx(10 * math.log(10) / 100)
    assert AUTO.pull(math.inf) == 1


@pytest.mark.parametrize("Q", [math.inf, -math.inf])
def test_a_gradient_that_is_gone_or_has_no_bound_is_out_of_range_too(Q):
    assert AUTO.need(Evidence(Q, HELD)) is Need.SLOPE
