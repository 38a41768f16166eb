"""The truth table of Algorithm 1, in both orientations, and what a sieve may be."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve import sieve as reasons
from gradsieve.sieve import safe_range

VANISHED, EXPLODED, IN_RANGE = 1.5, -1.5, 0.0


def change(Q, dS, relative=None):
    return gs.NormChange(S=1.0, dS=dS, relative=dS / 2 if relative is None else relative, Q=Q, dQ=0)


@pytest.mark.parametrize(
    ("Q", "dS", "keep", "reason"),
    [
        (VANISHED, +1.0, True, reasons.VANISHED_GROWS),
        (VANISHED, -1.0, False, reasons.VANISHED_FALLS),
        (VANISHED, 0.0, False, reasons.VANISHED_FALLS),
        (EXPLODED, -1.0, True, reasons.EXPLODED_FALLS),
        (EXPLODED, +1.0, False, reasons.EXPLODED_GROWS),
        (EXPLODED, 0.0, False, reasons.EXPLODED_GROWS),
        (IN_RANGE, +1.0, True, reasons.IN_RANGE),
        (IN_RANGE, -1.0, True, reasons.IN_RANGE),
        (1.0, -1.0, True, reasons.IN_RANGE),
        (-1.0, +1.0, True, reasons.IN_RANGE),
        (math.inf, +1.0, True, reasons.VANISHED_GROWS),
        (math.inf, 0.0, False, reasons.VANISHED_FALLS),
        (-math.inf, -math.inf, True, reasons.EXPLODED_FALLS),
        (VANISHED, 5e-324, True, reasons.VANISHED_GROWS),
        (VANISHED, math.nan, False, reasons.NOT_FINITE),
        (math.nan, 1.0, False, reasons.NOT_FINITE),
        (IN_RANGE, math.nan, True, reasons.IN_RANGE),
    ],
)
def test_the_truth_table(Q, dS, keep, reason):
    verdict = gs.Sieve(q_range=(-1, 1)).judge(change(Q, dS))
    assert (verdict.keep, verdict.reason) == (keep, reason)


@pytest.mark.parametrize(
    ("Q", "dS", "keep"),
    [
        (VANISHED, +1.0, False),
        (VANISHED, -1.0, True),
        (EXPLODED, -1.0, False),
        (EXPLODED, +1.0, True),
        (IN_RANGE, +1.0, True),
        (IN_RANGE, -1.0, True),
    ],
)
def test_the_listing_as_printed_is_the_opposite_out_of_range(Q, dS, keep):
    sieve = gs.Sieve(q_range=(-1, 1), orientation="listing")
    assert sieve.judge(change(Q, dS)).keep is keep


def test_the_text_is_the_default_orientation():
    assert gs.Sieve() == gs.Sieve(orientation="text", q_range=(-1.0, 1.0), estimator="full")


@pytest.mark.parametrize("Q", [VANISHED, EXPLODED, IN_RANGE])
@pytest.mark.parametrize("sign", [1, -1])
def test_max_change_bounds_the_relative_change_everywhere(Q, sign):
    sieve = gs.Sieve(q_range=(-1, 1), max_change=0.1)
    verdict = sieve.judge(change(Q, sign * 1.0, relative=sign * 0.11))
    assert (verdict.keep, verdict.reason) == (False, reasons.TOO_LARGE)
    unbounded = gs.Sieve(q_range=(-1, 1)).judge(change(Q, sign * 1.0, relative=sign * 0.09))
    assert sieve.judge(change(Q, sign * 1.0, relative=sign * 0.09)) == unbounded


@given(
    Q=st.floats(allow_nan=True),
    dS=st.floats(allow_nan=True),
    low=st.floats(-5, 5),
    width=st.floats(0, 5),
    bound=st.none() | st.floats(1e-6, 10),
    orientation=st.sampled_from(["text", "listing"]),
)
def test_every_change_gets_a_verdict_with_its_numbers(Q, dS, low, width, bound, orientation):
    sieve = gs.Sieve((low, low + width), max_change=bound, orientation=orientation)
    verdict = sieve.judge(change(Q, dS))
    assert verdict.reason
    for given_number, told in ((Q, verdict.Q), (dS, verdict.dS)):
        assert told == given_number or (math.isnan(told) and math.isnan(given_number))
    if math.isnan(Q):
        assert not verdict.keep
    if verdict.keep and not low <= Q <= low + width:
        towards = dS if low + width < Q else -dS
        assert (towards > 0) is (orientation == "text")
    if not sieve.needs_change(Q):
        assert sieve.judge(change(Q, math.nan)).keep == verdict.keep


def test_dS_is_needed_only_where_it_decides():
    assert not gs.Sieve((-1, 1)).needs_change(IN_RANGE)
    assert gs.Sieve((-1, 1)).needs_change(VANISHED)
    assert gs.Sieve((-1, 1)).needs_change(EXPLODED)
    assert gs.Sieve((-1, 1), max_change=0.5).needs_change(IN_RANGE)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"q_range": (1, -1)}, "q_range"),
        ({"q_range": (math.nan, 1)}, "q_range"),
        ({"q_range": (1, 2, 3)}, "q_range"),
        ({"max_change": 0}, "max_change"),
        ({"max_change": math.nan}, "max_change"),
        ({"estimator": "exact"}, "'full', 'frozen'"),
        ({"policy": "drop"}, "'skip', 'select', 'steer', 'hold'"),
        ({"on_skip": "forget"}, "'keep', 'decay', 'reset'"),
        ({"orientation": "printed"}, "'text', 'listing'"),
        ({"stall_after": 0}, "stall_after"),
        ({"steer_rate": 0}, "steer_rate"),
        ({"steer_rate": math.nan}, "steer_rate"),
        ({"horizon": 0}, "horizon"),
    ],
)
def test_settings_that_cannot_be_are_named(wrong, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        gs.Sieve(**wrong)


def test_each_policy_has_a_safe_range_of_its_own():
    assert gs.Sieve().q_range == gs.Sieve(policy="steer").q_range == (-1.0, 1.0)
    assert gs.Sieve(policy="hold").q_range == (-2.0, 0.5)
    assert gs.Sieve((-3, 2), policy="hold").q_range == (-3.0, 2.0)
    assert safe_range("hold", highest=1.0) == (-2.0, 1.0)
    assert safe_range("skip", lowest=-4.0) == (-4.0, 1.0)
