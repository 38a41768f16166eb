"""The settings of the sieve, and what every policy has in common."""

import math

import pytest
from evidences import Going, any_number, slopes, whole_evidence
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.sieve import POLICIES, Evidence, Need, Reason

every_policy = pytest.mark.parametrize("policy", POLICIES)
DEFAULT_RANGES = {
    "auto": (-2.0, 1.5),
    "hold": (-2.0, 0.5),
    "steer": (-1.0, 1.0),
    "select": (-1.0, 1.0),
    "skip": (-1.0, 1.0),
}


def test_auto_is_the_default():
    assert gs.Sieve() == gs.Sieve("auto", None, "full", limit=1.0, every=1)


@every_policy
def test_each_policy_has_a_safe_range_of_its_own(policy):
    assert gs.Sieve(policy).range == gs.Sieve(policy).at_work().q_range == DEFAULT_RANGES[policy]
    assert gs.Sieve(policy, (-3, 2)).range == (-3.0, 2.0)


def test_hold_and_auto_measure_slow_q_and_the_others_the_papers():
    measures = {policy: gs.Sieve(policy).at_work().measure for policy in POLICIES}
    assert {policy for policy, measure in measures.items() if measure == "slow Q"} == {
        "hold",
        "auto",
    }


@every_policy
@given(low=st.floats(-5, 5), width=st.floats(0, 5), Q=any_number)
def test_what_is_wanted_is_growth_where_vanished_and_a_fall_where_exploded(policy, low, width, Q):
    wanted = gs.Sieve(policy, (low, low + width)).at_work().wanted(Q)
    assert wanted == (1 if low + width < Q else -1 if low > Q else 0)


@every_policy
@given(low=st.floats(-5, 5), width=st.floats(0, 5), share=st.floats(0, 1))
def test_in_range_nothing_is_needed_and_every_update_is_kept_as_it_is(policy, low, width, share):
    at_work = gs.Sieve(policy, (low, low + width)).at_work()
    Q = min(max(low + share * width, low), low + width)
    assert at_work.need(Evidence(Q)) is Need.NOTHING
    decision = at_work.decide(Evidence(Q))
    assert (decision.verdict.keep, decision.verdict.reason) == (True, Reason.IN_RANGE)
    assert (decision.correction, decision.chosen) == (0, ())


@every_policy
def test_a_q_that_is_no_number_is_refused(policy):
    at_work = gs.Sieve(policy).at_work()
    assert at_work.need(Evidence(math.nan)) is Need.NOTHING
    verdict = at_work.decide(Evidence(math.nan)).verdict
    assert (verdict.keep, verdict.reason) == (False, Reason.NOT_FINITE)


@every_policy
@given(
    Q=any_number,
    dS=any_number,
    slope=slopes,
    shares=st.lists(any_number, min_size=1, max_size=5),
    going=st.builds(Going, st.integers(0, 1)),
)
def test_every_evidence_gets_a_decision_with_its_q(policy, Q, dS, slope, shares, going):
    at_work = gs.Sieve(policy).at_work()
    decision = at_work.decide(whole_evidence(at_work, Q, slope, dS, shares, going))
    verdict = decision.verdict
    assert isinstance(verdict.reason, Reason)
    assert verdict.Q == Q or (math.isnan(verdict.Q) and math.isnan(Q))
    assert math.isfinite(decision.correction)
    assert (decision.correction != 0) == verdict.reason.corrected
    if not verdict.keep:
        assert (decision.correction, decision.chosen) == (0, ())


@every_policy
@given(every=st.integers(1, 100))
def test_the_next_look_comes_at_least_as_late_as_asked_for(policy, every):
    at_work = gs.Sieve(policy, every=every).at_work()
    for evidence in (None, Evidence(0.0), Evidence(9.0)):
        assert at_work.looks_in(evidence) >= every


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"q_range": (1, -1)}, "q_range"),
        ({"q_range": (math.nan, 1)}, "q_range"),
        ({"q_range": (1, 2, 3)}, "q_range"),
        ({"q_range": 3}, "q_range"),
        ({"q_range": ("a", "b")}, "q_range"),
        ({"policy": "skip", "max_change": 0}, "max_change"),
        ({"policy": "skip", "max_change": math.nan}, "max_change"),
        ({"policy": "hold", "max_change": 0.5}, "max_change is 0.5; it belongs to the policy"),
        ({"estimator": "exact"}, "'full', 'frozen', 'measured'"),
        ({"policy": "drop"}, "'auto', 'hold', 'steer', 'select', 'skip'"),
        ({"on_skip": "forget"}, "'keep', 'decay', 'reset'"),
        ({"stall_after": 0}, "stall_after"),
        ({"steer_rate": 0}, "steer_rate"),
        ({"steer_rate": math.nan}, "steer_rate"),
        ({"horizon": 0}, "horizon"),
        ({"limit": 0}, "limit"),
        ({"limit": math.nan}, "limit"),
        ({"every": 0}, "every"),
        ({"every": 1.5}, "every"),
        ({"window": 0}, "window"),
    ],
)
def test_settings_that_cannot_be_are_named(wrong, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        gs.Sieve(**wrong)
