"""Policy "select": the examples that lead back, and only those."""

import math

import pytest
from evidences import any_number
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.sieve import Evidence, Need, Reason

SELECT = gs.Sieve("select", (-1, 1)).at_work()


@given(
    side=st.sampled_from([1, -1]), shares=st.lists(any_number, min_size=1, max_size=20).map(tuple)
)
def test_an_example_is_chosen_if_and_only_if_its_contribution_leads_back(side, shares):
    Q = 2.0 * side
    assert SELECT.need(Evidence(Q)) is Need.CONTRIBUTIONS
    decision = SELECT.decide(Evidence(Q, contributions=shares))
    helpful = tuple(side * share > 0 for share in shares)
    assert decision.verdict.keep is any(helpful)
    assert decision.chosen == (helpful if any(helpful) else ())
    if any(helpful):
        assert decision.verdict.dS * side > 0


@pytest.mark.parametrize(
    ("Q", "shares", "reason"),
    [
        (2.0, (1.0, -1.0), Reason.VANISHED_SELECTED),
        (-2.0, (1.0, -1.0), Reason.EXPLODED_SELECTED),
        (2.0, (0.0, -1.0), Reason.VANISHED_NONE_HELPS),
        (-2.0, (1.0, 0.0), Reason.EXPLODED_NONE_HELPS),
        (2.0, (math.nan,), Reason.VANISHED_NONE_HELPS),
    ],
)
def test_the_reason_says_which_side_and_whether_any_helps(Q, shares, reason):
    assert SELECT.decide(Evidence(Q, contributions=shares)).verdict.reason is reason


def test_dS_is_the_sum_of_the_chosen_contributions():
    verdict = SELECT.decide(Evidence(2.0, contributions=(1.0, -5.0, 0.25))).verdict
    assert verdict.dS == 1.25
