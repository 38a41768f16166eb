"""Policy "steer": the smallest correction that turns Q back, never longer than its bound."""

import math

import pytest
from evidences import correction_length, slopes
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.sieve import Evidence, Need, Reason, Slope

LN10 = math.log(10)
sides = st.sampled_from([1, -1])


def decided(side, slope, **settings):
    """Q is one beyond the range, on the side where it has vanished (1) or exploded (-1)."""
    policy = gs.Sieve("steer", (-1, 1), **settings).at_work()
    return policy.decide(Evidence(2.0 * side, slope=slope))


def turned(slope, correction):
    """The change of −ln 10 · Q that the corrected update makes, to first order."""
    return -LN10 * (slope.along + correction * slope.square)


@given(side=sides, slope=slopes, limit=st.floats(1e-3, 1e3))
def test_a_correction_is_never_longer_than_the_limit_and_has_the_wanted_sign(side, slope, limit):
    decision = decided(side, slope, limit=limit)
    assert decision.verdict.keep
    assert correction_length(decision, slope) <= limit * slope.length * (1 + 1e-9)
    assert -side * decision.correction >= 0  # along −∂Q/∂w where Q is too high


@given(side=sides, slope=slopes, rate=st.floats(1e-4, 1))
def test_without_a_bound_the_update_turns_q_back_by_exactly_the_steer_rate(side, slope, rate):
    decision = decided(side, slope, limit=math.inf, steer_rate=rate)
    before = side * turned(slope, 0.0)
    if before >= rate:
        assert (decision.correction, decision.verdict.reason.corrected) == (0, False)
    else:
        made = side * turned(slope, decision.correction)
        assert made == pytest.approx(rate, rel=1e-6, abs=1e-9 * abs(before))
        assert decision.verdict.relative == pytest.approx(side * rate, rel=1e-6, abs=1e-9)


@given(side=sides, slope=slopes, limit=st.floats(1e-3, 1e3))
def test_a_bounded_correction_is_the_unbounded_one_or_as_long_as_the_bound(side, slope, limit):
    bounded, whole = (decided(side, slope, limit=bound) for bound in (limit, math.inf))
    longest = limit * slope.length
    assert correction_length(bounded, slope) == pytest.approx(
        min(correction_length(whole, slope), longest), rel=1e-9
    )
    told = bounded.verdict.relative
    assert told == pytest.approx(turned(slope, bounded.correction), rel=1e-6, abs=1e-9)


@given(slope=slopes, scale=st.floats(1e-9, 1))
def test_where_the_bound_decides_a_correction_falls_in_proportion_to_its_update(slope, scale):
    slope = Slope(0.0, slope.square, 1e-9 * slope.length / math.sqrt(slope.square))
    smaller = Slope(0.0, slope.square, scale * slope.length)
    assert decided(1, smaller).correction == pytest.approx(scale * decided(1, slope).correction)


@pytest.mark.parametrize("side", [1, -1])
def test_an_update_of_length_zero_gets_no_correction(side):
    decision = decided(side, Slope(0.0, 1.0, 0.0))
    reason = Reason.VANISHED_STUCK if side > 0 else Reason.EXPLODED_STUCK
    assert (decision.correction, decision.verdict.reason) == (0, reason)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("square", [0.0, math.inf, math.nan])
def test_without_a_slope_to_go_along_there_is_no_correction(side, square):
    decision = decided(side, Slope(0.0, square, 1.0))
    reason = Reason.VANISHED_STUCK if side > 0 else Reason.EXPLODED_STUCK
    assert (decision.correction, decision.verdict.reason) == (0, reason)


@pytest.mark.parametrize("along", [math.nan, math.inf, -math.inf])
def test_an_update_whose_effect_is_not_finite_is_left_out(along):
    verdict = decided(1, Slope(along, 1.0, 1.0)).verdict
    assert (verdict.keep, verdict.reason) == (False, Reason.NOT_FINITE)


@pytest.mark.parametrize(
    ("side", "reason"), [(1, Reason.VANISHED_GROWS), (-1, Reason.EXPLODED_FALLS)]
)
def test_an_update_that_leads_back_by_itself_is_left_as_it_is(side, reason):
    decision = decided(side, Slope(-side * 0.1, 1.0, 1.0))
    assert (decision.correction, decision.verdict.reason) == (0, reason)


@pytest.mark.parametrize("Q", [1.1, -1.1, math.inf, -math.inf])
def test_out_of_range_the_slope_is_needed(Q):
    assert gs.Sieve("steer", (-1, 1)).at_work().need(Evidence(Q)) is Need.SLOPE
