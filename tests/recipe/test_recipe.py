"""A recipe: one value that is replaced in part, compared, stored, or refused."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.recipe import PARTS
from gradsieve.settings import rules, types
from gradsieve.sieve import POLICIES

EVERYTHING = gs.Recipe(
    start=gs.Start("identity", gain=0.9, input_gain=16.0, bias_spread=0.5),
    optimiser=gs.Optimiser(3e-4, 0.5, False, clip=0.5, rms_decay=0.99, rms_bound=10.0),
    sieve=gs.Sieve("hold", (-3, 2), horizon=7, limit=math.inf, every=10),
    schedule=gs.Schedule(warm_up=0.1, cool_down=0.25, roll_back=6.0),
    curriculum=gs.Curriculum(((0.1, 0.2), (0.5, 0.3)), rate_power=1.3, batch_power=1.5),
    budget=gs.Budget(20, 30, 40, (10, 20, 30), stop_at=None, patience=4, probe_every=0),
)
RECIPES = [
    gs.Recipe(),
    EVERYTHING,
    gs.recipes.recommended(),
    gs.recipes.own_data(),
    *(gs.recipes.paper(sieve) for sieve in ("off", "frozen", "full")),
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_survives_json(recipe):
    text = json.dumps(recipe.as_dict(), allow_nan=False)
    assert gs.Recipe.from_dict(json.loads(text)) == recipe


def test_a_part_or_setting_that_is_left_out_has_its_default():
    assert gs.Recipe.from_dict({}) == gs.Recipe()
    found = gs.Recipe.from_dict({"optimiser": {"clip": 1.0}})
    assert found == gs.Recipe(optimiser=gs.Optimiser(clip=1.0))


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ([], "parts start, optimiser"),
        ({"sive": None}, "parts start, optimiser"),
        ({"sieve": "hold"}, "Sieve is 'hold'"),
        ({"budget": {"epoch": 3}}, "Budget has no setting 'epoch'"),
        ({"budget": {"epochs": -3}}, "epochs is -3"),
        ({"budget": None}, "budget is None"),
    ],
)
def test_json_that_is_no_recipe_is_refused(stored, said):
    with pytest.raises(gs.InvalidArgument, match=said):
        gs.Recipe.from_dict(stored)


def test_the_default_and_the_papers_are_the_papers_protocol():
    recipe = gs.Recipe()
    assert recipe == gs.recipes.paper("off")
    assert (recipe.budget.batch, recipe.optimiser.momentum, recipe.budget.iterations) == (
        10, 0.9, 50,
    )  # fmt: skip
    assert (recipe.budget.epochs, recipe.budget.sizes) == (2000, (20_000, 1_000, 10_000))
    assert (recipe.sieve, recipe.optimiser.clip, recipe.budget.stop_at) == (None, None, 0.99)
    for estimator in ("frozen", "full"):
        sieve = gs.Sieve("skip", estimator=estimator)
        assert gs.recipes.paper(estimator) == recipe.replaced(sieve=sieve)
    assert gs.recipes.paper() == gs.recipes.paper("frozen")
    with pytest.raises(gs.InvalidArgument, match="'off', 'frozen' or 'full'"):
        gs.recipes.paper("hold")


def test_both_recommended_recipes_have_the_default_policy_and_given_data_no_curriculum():
    drawn, given = gs.recipes.recommended(), gs.recipes.own_data()
    assert drawn.sieve == given.sieve == gs.Sieve()
    assert (drawn.start.recurrent, given.start.recurrent) == ("identity", "orthogonal")
    assert drawn.curriculum.stages
    assert not given.curriculum.stages


@pytest.mark.parametrize("name", list(EVERYTHING.flat()))
def test_each_single_setting_can_be_replaced_by_its_name_and_nothing_else_changes(name):
    base = gs.Recipe(sieve=gs.Sieve()).replaced(rms_decay=0.9)  # which rms_bound needs
    value = "skip" if name == "policy" else EVERYTHING.flat()[name]
    if name == "max_change":
        base, value = base.replaced(policy="skip"), 0.5
    changed = base.replaced(**{name: value})
    assert changed.flat() == base.flat() | {name: value}
    assert set(changed.differing(base)) <= {name}


def test_whole_parts_can_be_replaced_by_a_value_and_some_by_a_name():
    recipe = gs.Recipe().replaced(budget=gs.Budget(epochs=7), sieve="hold", start="identity")
    assert recipe == gs.Recipe(
        budget=gs.Budget(epochs=7), sieve=gs.Sieve("hold"), start=gs.Start("identity")
    )
    assert recipe.replaced(sieve="off").sieve is recipe.replaced(sieve=None).sieve is None


def test_a_setting_of_the_sieve_turns_it_on():
    assert gs.Recipe().replaced(every=5).sieve == gs.Sieve(every=5)


@given(st.permutations(["sieve", "every", "q_range", "rms_decay", "rms_bound", "budget", "epochs"]))
def test_the_order_of_the_names_does_not_matter(order):
    values = {
        "sieve": "hold", "every": 5, "q_range": (-math.inf, 1), "rms_decay": 0.9, "rms_bound": 2.0,
        "budget": gs.Budget(batch=3), "epochs": 7,
    }  # fmt: skip
    recipe = gs.Recipe().replaced(**{name: values[name] for name in order})
    assert recipe == gs.Recipe(
        sieve=gs.Sieve("hold", (-math.inf, 1), every=5),
        optimiser=gs.Optimiser(rms_decay=0.9, rms_bound=2.0),
        budget=gs.Budget(epochs=7, batch=3),
    )
    assert gs.Recipe.from_dict(json.loads(json.dumps(recipe.as_dict(), allow_nan=False))) == recipe


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sieve": "off", "every": 5}, "sieve is off; every cannot be set"),
        ({"sieve": None, "limit": 2.0}, "sieve is off; limit cannot be set"),
        ({"learning_rat": 0.1}, "did you mean 'learning_rate'"),
        ({"scheduel": None}, "did you mean 'schedule'"),
        ({"warmup": 0.1}, "did you mean 'warm_up'"),
        ({"rate_by_length": 1}, "did you mean 'rate_power'"),
        ({"xyzzy": 1}, "'xyzzy' is no setting of a recipe; it has start, optimiser"),
        ({"sieve": "dorp"}, "policy is 'dorp'; it must be 'auto', 'hold'"),
        ({"sieve": 3}, "sieve is 3; it must be a gradsieve.Sieve, or None"),
        ({"start": "unit"}, "recurrent is 'unit'"),
        ({"budget": 20}, "budget is 20; it must be a gradsieve.Budget"),
        ({"optimiser": None}, "optimiser is None"),
    ],
)
def test_what_is_no_setting_or_part_is_named_with_what_there_is(wrong, said):
    with pytest.raises(gs.InvalidArgument, match=said):
        gs.Recipe().replaced(**wrong)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"batch": 0}, "batch"),
        ({"epochs": 0}, "epochs"),
        ({"epochs": 1.5}, "epochs"),
        ({"iterations": -1}, "iterations"),
        ({"validate_every": 0}, "validate_every"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"learning_rate": math.inf}, "learning_rate"),
        ({"momentum": 1}, "momentum"),
        ({"momentum": -0.1}, "momentum"),
        ({"momentum": math.nan}, "momentum"),
        ({"clip": 0}, "clip"),
        ({"clip": math.nan}, "clip"),
        ({"rms_decay": 1}, "rms_decay"),
        ({"rms_decay": 0}, "rms_decay"),
        ({"rms_decay": 0.9, "rms_bound": 0.5}, "rms_bound"),
        ({"rms_decay": 0.9, "rms_bound": math.nan}, "rms_bound"),
        ({"rms_bound": 10}, "needs an rms_decay"),
        ({"warm_up": 0}, "warm_up"),
        ({"warm_up": 1.1}, "warm_up"),
        ({"roll_back": 1}, "roll_back"),
        ({"roll_back": math.nan}, "roll_back"),
        ({"cool_down": 0}, "cool_down"),
        ({"cool_down": 1.1}, "cool_down"),
        ({"cool_down": math.nan}, "cool_down"),
        ({"rate_power": -1}, "rate_power"),
        ({"batch_power": math.nan}, "batch_power"),
        ({"sizes": (1, 2)}, "sizes"),
        ({"sizes": (0, 1, 1)}, "sizes"),
        ({"sizes": (1.5, 1, 1)}, "sizes"),
        ({"sizes": "abc"}, "sizes"),
        ({"sizes": 5}, "sizes"),
        ({"patience": 0}, "patience"),
        ({"probe_every": -1}, "probe_every"),
        ({"stop_at": "never"}, "stop_at"),
        ({"variance": -1}, "variance"),
    ],
)
def test_settings_that_cannot_be_are_named(wrong, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        gs.Recipe().replaced(**wrong)


def test_every_setting_has_a_help_a_type_and_a_name_of_its_own():
    assert [field.name for field in dataclasses.fields(gs.Recipe)] == list(PARTS)
    names = [name for group in PARTS.values() for name in rules(group)]
    assert len(set(names)) == len(names)
    assert not set(names) & set(PARTS)
    for group in PARTS.values():
        assert set(types(group)) == set(rules(group))
        for name, rule in rules(group).items():
            assert rule.help[0].isupper(), name
            assert rule.help.endswith("."), name
            assert rule.allows(getattr(group(), name)), name


def test_flat_has_every_setting_and_none_for_those_of_a_sieve_that_is_off():
    flat = gs.Recipe().flat()
    assert flat["learning_rate"] == 1e-5
    assert {flat[name] for name in rules(gs.Sieve)} == {None}
    assert EVERYTHING.flat()["policy"] == "hold"


@given(st.sampled_from(RECIPES), st.sampled_from(RECIPES))
def test_recipes_differ_where_one_of_their_settings_does(one, other):
    differing = one.differing(other)
    assert bool(differing) == (one != other)
    for name, (own, its) in differing.items():
        assert (own, its) == (one.flat()[name], other.flat()[name])
        assert own != its


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_can_be_asked_for_by_its_name(policy):
    assert gs.Recipe().replaced(sieve=policy).sieve == gs.Sieve(policy)
