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
LEARNS = [Going(goes_on=True), Going(has_time=True), Going(goes_on=True, has_time=True)]


@given(Q=out_of_range, slope=slopes)
def test_where_nothing_is_learned_it_decides_as_hold_does(Q, slope):
    assert AUTO.need(Evidence(Q, Going())) is Need.SLOPE
    evidence = Evidence(Q, Going(), slope=slope)
    hold = gs.Sieve("hold", (-2, 1.5), steer_rate=AUTO.pull(Q), limit=AUTO.limit).at_work()
    assert AUTO.decide(evidence) == hold.decide(evidence)


@pytest.mark.parametrize("going", LEARNS)
@given(Q=out_of_range)
def test_what_learns_or_has_had_no_time_to_is_left_alone_and_that_is_said(going, Q):
    evidence = Evidence(Q, going)
    assert AUTO.need(evidence) is Need.NOTHING
    decision = AUTO.decide(evidence)
    assert (decision.verdict.keep, decision.verdict.reason) == (True, Reason.LEARNING)
    assert decision.correction == 0


def test_it_looks_seldom_until_it_acts():
    acting = Evidence(3.0, Going(), slope=slopes_of_one())
    calm = Evidence(3.0, Going(goes_on=True))
    assert AUTO.looks_in(acting) == 1
    assert 1 < AUTO.looks_in(calm) == AUTO.looks_in(None)
    assert gs.Sieve("auto", every=3).at_work().looks_in(acting) == 3


@given(Q=st.floats(-400, 400))
def test_the_pull_grows_with_the_distance_from_the_range_and_is_bounded(Q):
    rate = gs.Sieve().steer_rate
    assert rate <= AUTO.pull(Q) <= 1
    assert AUTO.pull(1.6) == AUTO.pull(-2.1) == rate
    assert AUTO.pull(11.5) == pytest.approx(10 * math.log(10) / 100)
    assert AUTO.pull(math.inf) == 1


def slopes_of_one():
    return gs.sieve.Slope(0.0, 1.0, 1.0)


@pytest.mark.parametrize("Q", [math.inf, -math.inf])
def test_a_gradient_that_is_gone_or_has_no_bound_is_out_of_range_too(Q):
    assert AUTO.need(Evidence(Q, Going())) is Need.SLOPE
