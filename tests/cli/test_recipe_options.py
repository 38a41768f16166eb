"""Options made from a recipe's rules: every setting can be given, and comes out as it was meant."""

import json
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from gradsieve import recipes
from gradsieve.cli.recipe_options import SettingOption, recipe_options
from gradsieve.errors import InvalidArgument
from gradsieve.recipe import PARTS, Recipe, Sieve
from gradsieve.settings import rules

OPTIONS = [
    SettingOption(part, name, rule)
    for part, group in PARTS.items()
    for name, rule in rules(group).items()
]
WRITTEN = {  # option: what is written, and the setting's value
    "sieve": ("Hold", "hold"),
    "start": ("identity", "identity"),
    "q_range": ("-2,0.5", (-2, 0.5)),
    "stages": ("0.2:0.1,0.5:0.25", ((0.2, 0.1), (0.5, 0.25))),
    "sizes": ("200,100,50", (200, 100, 50)),
    "estimator": ("measured", "measured"),
    "on_skip": ("decay", "decay"),
    "limit": ("inf", float("inf")),
    "roll_back": ("6", 6),
    "rms_bound": ("10", 10),
    "max_change": ("none", None),
}


def called(*words, parts=(), **choices):
    """The recipe that a command gets from these words."""
    seen = []

    @recipe_options(*parts, **choices)
    def command(name: Annotated[str, typer.Option()] = "none", *, recipe: Recipe) -> None:
        seen.append((name, recipe))

    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, list(words))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return seen[0][1]


def test_without_options_it_is_the_first_base():
    assert called() == recipes.recommended()
    assert called("--recipe", "paper") == recipes.paper()
    assert called(bases={"paper": recipes.paper}) == recipes.paper()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_setting_can_be_given(option):
    text, value = WRITTEN.get(option.name, ("0.5", 0.5))
    if option.rule.whole:
        text, value = "7", 7
    if option.is_switch:
        text, value = False, False
    assert option.read(text) == value
    words = ["--no-reset-velocity"] if option.is_switch else [option.dashed, text]
    assert called(*words) == recipes.recommended().replaced(**{option.name: value})


def test_a_part_is_named_before_its_other_settings_are_replaced():
    assert called("--every", "3", "--sieve", "hold").sieve == Sieve("hold", every=3)
    assert called("--gain", "0.9", "--start", "identity").start.gain == 0.9
    assert called("--sieve", "off").sieve is None


def test_a_command_can_choose_parts_and_leave_settings_out():
    for words, choices in (
        (["--clip", "1"], {"parts": ("sieve",)}),
        (["--epochs", "1"], {"without": ("epochs",)}),
        (["--recipe", "paper"], {"bases": {"paper": recipes.paper}}),
    ):
        with pytest.raises(AssertionError, match="No such option"):
            called(*words, **choices)


def test_the_default_that_help_shows_is_the_base_recipes():
    said = {option.name: option.default(recipes.recommended()) for option in OPTIONS}
    assert (said["sieve"], said["clip"], said["sizes"]) == ("auto", "1", "20000,1000,10000")
    assert (said["q_range"], said["rms_bound"], said["reset_velocity"]) == ("none", "10", "true")
    off = {option.name: option.default(recipes.paper("off")) for option in OPTIONS}
    assert (off["sieve"], off["every"], off["stages"]) == ("off", "none", "none")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--sieve", "on"], "--sieve is 'on'; it may be auto, hold, steer, select, skip, off"),
        (["--recipe", "best"], "--recipe is 'best'; it may be recommended, own-data, paper"),
        (
            ["--momentum", "much"],
            "--momentum is 'much'; it must be a number of at least 0 and below 1",
        ),
        (["--momentum", "1"], "momentum is 1; it must be a number of at least 0 and below 1"),
        (["--sieve", "off", "--window", "1"], "--window is given, but --sieve is off"),
        (["--stages", "a:b"], "--stages is 'a:b'; it must be pairs"),
    ],
)
def test_a_wrong_name_or_value_says_what_there_is(words, says):
    with pytest.raises(InvalidArgument) as refused:
        called(*words)
    assert str(refused.value).startswith(says)


def test_options_are_json_in_the_recipe_that_comes_out():
    recipe = called("--sieve", "hold", "--q-range", "-2,1", "--stages", "0.5:0.5", "--limit", "inf")
    assert Recipe.from_dict(json.loads(json.dumps(recipe.as_dict()))) == recipe
