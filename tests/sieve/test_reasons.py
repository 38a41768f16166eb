"""Reasons: stored by name, read back by name or by the words of any version."""

import pytest

from gradsieve.sieve import Reason

OLDER = {
    "no sieve": Reason.NO_SIEVE,
    "in range": Reason.IN_RANGE,
    "not finite": Reason.NOT_FINITE,
    "change too large": Reason.TOO_LARGE,
    "vanished, grows back": Reason.VANISHED_GROWS,
    "vanished, would fall further": Reason.VANISHED_FALLS,
    "exploded, falls back": Reason.EXPLODED_FALLS,
    "exploded, would grow further": Reason.EXPLODED_GROWS,
    "vanished, steered back": Reason.VANISHED_CORRECTED,
    "exploded, steered back": Reason.EXPLODED_CORRECTED,
    "vanished, steered back: no way found": Reason.VANISHED_STUCK,
    "exploded, steered back: no way found": Reason.EXPLODED_STUCK,
    "vanished, examples selected": Reason.VANISHED_SELECTED,
    "exploded, examples selected": Reason.EXPLODED_SELECTED,
    "vanished, no example helps": Reason.VANISHED_NONE_HELPS,
    "exploded, no example helps": Reason.EXPLODED_NONE_HELPS,
    "stall broken": Reason.STALL_BROKEN,
    "drawn to be skipped": Reason.LEFT_OUT,
}


@pytest.mark.parametrize(("words", "reason"), OLDER.items())
def test_the_words_of_version_0_1_are_read(words, reason):
    assert Reason.read(words) is reason


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_is_read_back_by_its_name_and_by_its_words(reason):
    assert Reason.read(reason.name) is reason
    assert Reason.read(str(reason)) is reason


def test_what_is_no_reason_is_none():
    assert Reason.read("because") is None


def test_exactly_the_corrected_ones_are_corrected():
    assert {reason for reason in Reason if reason.corrected} == {
        Reason.VANISHED_CORRECTED,
        Reason.EXPLODED_CORRECTED,
    }
