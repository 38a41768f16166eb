"""A stall: told when it is complete, once, and forgotten by any update that was kept."""

from hypothesis import given
from hypothesis import strategies as st

from gradsieve.sieve import StallGuard


@given(after=st.integers(1, 10), kept=st.lists(st.booleans(), max_size=100))
def test_a_stall_is_told_after_every_so_many_updates_left_out_in_a_row(after, kept):
    guard = StallGuard(after)
    told = [guard.stalled(keep) for keep in kept]
    expected, in_a_row = [], 0
    for keep in kept:
        in_a_row = 0 if keep else in_a_row + 1
        expected.append(in_a_row > 0 and in_a_row % after == 0)
    assert told == expected
