"""Groups of settings: what a rule allows, what its words say, what JSON keeps."""

import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.settings import Rule, Settings, rules, setting, types


@dataclass(frozen=True)
class Example(Settings):
    share: float = setting(0.5, "A share.", above=0, most=1)
    count: int | None = setting(3, "A count.", least=1, whole=True, none=True)
    limit: float = setting(math.inf, "A bound.", above=0, infinite=True)
    kind: str = setting("a", "A kind.", choices=("a", "b"))
    pairs: tuple[tuple[float, float], ...] = setting((), "Pairs.", shape="pairs of numbers")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"share": 0}, "share is 0; it must be a number above 0 and at most 1"),
        ({"share": math.nan}, "share is nan"),
        ({"share": math.inf}, "share is inf"),
        ({"share": "0.5"}, "share is '0.5'"),
        ({"share": True}, "share is True"),
        ({"share": None}, "share is None"),
        ({"count": 0}, "count is 0; it must be a whole number of at least 1, or None"),
        ({"count": 1.5}, "count is 1.5"),
        ({"limit": -math.inf}, "limit is -inf"),
        ({"limit": math.nan}, "limit is nan"),
        ({"kind": "c"}, "kind is 'c'; it must be 'a', 'b'"),
        ({"kind": ["a"]}, "kind is"),
    ],
)
def test_a_value_that_cannot_be_is_named_with_what_it_may_be(wrong, said):
    with pytest.raises(gs.InvalidArgument, match=said):
        Example(**wrong)


@given(
    share=st.floats(0, 1, exclude_min=True),
    count=st.none() | st.integers(1, 10**9),
    limit=st.just(math.inf) | st.floats(1e-300, 1e300),
    pairs=st.lists(st.tuples(st.floats(allow_nan=False), st.floats(0, 1))).map(tuple),
)
def test_settings_survive_json_that_knows_no_infinity(share, count, limit, pairs):
    own = Example(share, count, limit, "b", pairs)
    text = json.dumps(own.as_dict(), allow_nan=False)
    assert Example.from_dict(json.loads(text)) == own


@given(
    value=st.floats(allow_nan=True) | st.integers(), least=st.floats(-5, 5), above=st.floats(-5, 5)
)
def test_a_rule_allows_exactly_the_numbers_within_its_bounds(value, least, above):
    allowed = Rule("", least=least, above=above).allows(value)
    assert allowed == (math.isfinite(value) and value >= least and value > above)


def test_whole_numbers_become_integers():
    count = Example(count=4.0).count
    assert (count, type(count)) == (4, int)


@pytest.mark.parametrize("values", [None, [], "share", 3])
def test_what_is_no_object_is_refused(values):
    with pytest.raises(gs.InvalidArgument, match=r"Example is .*; it must be an object"):
        Example.from_dict(values)


def test_an_unknown_name_is_refused_with_those_that_there_are():
    with pytest.raises(gs.InvalidArgument, match="no setting 'shore'; it has share, count"):
        Example.from_dict({"shore": 0.5})


def test_rules_and_types_are_those_of_the_fields_in_their_order():
    assert (
        list(rules(Example)) == list(types(Example)) == ["share", "count", "limit", "kind", "pairs"]
    )
    assert types(Example)["count"] == int | None
    assert rules(Example)["share"].help == "A share."
