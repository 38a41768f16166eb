"""Policy "hold": steer, by another measure and within another range."""

from evidences import any_number, slopes
from hypothesis import given

import gradsieve as gs
from gradsieve.sieve import Evidence


@given(Q=any_number, slope=slopes)
def test_at_the_same_numbers_hold_decides_as_steer_does(Q, slope):
    hold, steer = (gs.Sieve(policy, (-2, 0.5)).at_work() for policy in ("hold", "steer"))
    evidence = Evidence(Q, slope=slope)
    assert repr(hold.decide(evidence)) == repr(steer.decide(evidence))
    assert hold.need(evidence) is steer.need(evidence)
    assert (hold.measure, steer.measure) == ("slow Q", "Q")
