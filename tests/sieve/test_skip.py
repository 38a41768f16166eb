"""Policy "skip": the truth table of Algorithm 1, as corrected."""

import math

import pytest
from evidences import any_number, change
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.sieve import Evidence, Need, Reason

VANISHED, EXPLODED, IN_RANGE = 1.5, -1.5, 0.0


def decided(Q, dS, relative=None, **settings):
    policy = gs.Sieve("skip", **{"q_range": (-1, 1)} | settings).at_work()
    return policy.decide(Evidence(Q, change=change(Q, dS, relative))).verdict


@pytest.mark.parametrize(
    ("Q", "dS", "keep", "reason"),
    [
        (VANISHED, +1.0, True, Reason.VANISHED_GROWS),
        (VANISHED, -1.0, False, Reason.VANISHED_FALLS),
        (VANISHED, 0.0, False, Reason.VANISHED_FALLS),
        (EXPLODED, -1.0, True, Reason.EXPLODED_FALLS),
        (EXPLODED, +1.0, False, Reason.EXPLODED_GROWS),
        (EXPLODED, 0.0, False, Reason.EXPLODED_GROWS),
        (IN_RANGE, +1.0, True, Reason.IN_RANGE),
        (IN_RANGE, -1.0, True, Reason.IN_RANGE),
        (1.0, -1.0, True, Reason.IN_RANGE),
        (-1.0, +1.0, True, Reason.IN_RANGE),
        (math.inf, +1.0, True, Reason.VANISHED_GROWS),
        (math.inf, 0.0, False, Reason.VANISHED_FALLS),
        (-math.inf, -math.inf, True, Reason.EXPLODED_FALLS),
        (VANISHED, 5e-324, True, Reason.VANISHED_GROWS),
        (VANISHED, math.nan, False, Reason.NOT_FINITE),
        (math.nan, 1.0, False, Reason.NOT_FINITE),
        (IN_RANGE, math.nan, True, Reason.IN_RANGE),
    ],
)
def test_the_truth_table(Q, dS, keep, reason):
    verdict = decided(Q, dS)
    assert (verdict.keep, verdict.reason) == (keep, reason)


@given(Q=any_number, dS=any_number)
def test_a_sieve_judges_a_change_by_this_table_whatever_its_policy(Q, dS):
    for policy in ("auto", "hold", "skip"):
        assert repr(gs.Sieve(policy, (-1, 1)).judge(change(Q, dS))) == repr(decided(Q, dS))


@pytest.mark.parametrize("Q", [VANISHED, EXPLODED, IN_RANGE])
@pytest.mark.parametrize("sign", [1, -1])
def test_max_change_bounds_the_relative_change_everywhere(Q, sign):
    verdict = decided(Q, sign * 1.0, relative=sign * 0.11, max_change=0.1)
    assert (verdict.keep, verdict.reason) == (False, Reason.TOO_LARGE)
    unbounded = decided(Q, sign * 1.0, relative=sign * 0.09)
    assert decided(Q, sign * 1.0, relative=sign * 0.09, max_change=0.1) == unbounded


@given(
    Q=any_number,
    dS=any_number,
    low=st.floats(-5, 5),
    width=st.floats(0, 5),
    bound=st.none() | st.floats(1e-6, 10),
)
def test_every_change_gets_a_verdict_with_its_numbers(Q, dS, low, width, bound):
    verdict = decided(Q, dS, q_range=(low, low + width), max_change=bound)
    for given_number, told in ((Q, verdict.Q), (dS, verdict.dS)):
        assert told == given_number or (math.isnan(told) and math.isnan(given_number))
    if math.isnan(Q):
        assert not verdict.keep
    if verdict.keep and not low <= Q <= low + width:
        assert (dS if low + width < Q else -dS) > 0
    policy = gs.Sieve("skip", (low, low + width), max_change=bound).at_work()
    if policy.need(Evidence(Q)) is Need.NOTHING:
        assert policy.decide(Evidence(Q)).verdict.keep == verdict.keep


def test_dS_is_needed_only_where_it_decides():
    def need(Q, **settings):
        return gs.Sieve("skip", (-1, 1), **settings).at_work().need(Evidence(Q))

    assert need(IN_RANGE) is Need.NOTHING
    assert need(VANISHED) is need(EXPLODED) is Need.CHANGE
    assert need(IN_RANGE, max_change=0.5) is Need.CHANGE
