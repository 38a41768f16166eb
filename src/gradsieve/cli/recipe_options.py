"""The settings of a `Recipe` as command-line options, made from the rules of its fields.

A command takes one parameter `recipe`, and `recipe_options` puts the options in its place:

    @recipe_options("sieve", "budget", without=("sizes",))
    def command(data: Path, *, recipe: Recipe) -> None: ...

Each part of the recipe has its own panel in the help. `--sieve` names a policy or `off`, and
`--start` a recurrent matrix. A value is read by its setting's rule, so a wrong one is an
`InvalidArgument` that lists the allowed ones.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any

import typer

from gradsieve import recipes
from gradsieve.errors import InvalidArgument
from gradsieve.recipe import PARTS, Recipe
from gradsieve.settings import Rule, rules

Command = Callable[..., None]
Bases = Mapping[str, Callable[[], Recipe]]
BASES: Bases = {
    "recommended": recipes.recommended,
    "own-data": recipes.own_data,
    "paper": recipes.paper,
}
OFF = "off"
NAMED = {"policy": "sieve", "recurrent": "start"}  # settings whose option is called as their part
MAIN = ("sieve", "start", "epochs")  # that most people change


@dataclass(frozen=True)
class SettingOption:
    """One setting of one part of a recipe, as an option."""

    part: str
    setting: str
    rule: Rule

    @property
    def name(self) -> str:
        return NAMED.get(self.setting, self.setting)

    @property
    def dashed(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def choices(self) -> tuple[Any, ...]:
        return (*self.rule.choices, OFF) if self.name == "sieve" else self.rule.choices

    @property
    def is_switch(self) -> bool:
        return self.choices == (True, False)

    def read(self, given: str | bool) -> Any:
        """The setting's value, from the words on the command line."""
        if isinstance(given, bool):
            return given
        word = given.strip().lower()
        if self.choices:
            if word not in self.choices:
                allowed = ", ".join(self.choices)
                raise InvalidArgument(f"{self.dashed} is {given!r}; it may be {allowed}")
            return word
        if self.rule.word and word == self.rule.word:
            return word
        try:
            if word == "none":
                return () if self.rule.shape and not self.rule.none else None
            return _numbers(word) if self.rule.shape else _number(word)
        except ValueError as error:
            raise InvalidArgument(f"{self.dashed} is {given!r}; it must be {self.rule}") from error

    def default(self, base: Recipe) -> str:
        """The base recipe's value, as a person would write it."""
        group = getattr(base, self.part)
        if group is None:
            return OFF if self.name == "sieve" else "none"
        value = getattr(group, self.setting)
        return "none" if value in (None, ()) else _written(value)

    def parameter(self, base: Recipe, panel: str | None) -> Parameter:
        """The parameter from which Typer makes the option."""
        number = f"NUMBER|{self.rule.word}" if self.rule.word else "NUMBER"
        metavar = "|".join(map(str, self.choices)) or ("VALUES" if self.rule.shape else number)
        info = typer.Option(
            f"{self.dashed}/--no-{self.dashed[2:]}" if self.is_switch else self.dashed,
            help=f"{self.rule.help} [dim]\\[default: {self.default(base)}][/dim]",
            show_default=False,
            rich_help_panel=panel,
            metavar=None if self.is_switch else metavar,
        )
        return _parameter(self.name, bool if self.is_switch else str, info)


def recipe_options(
    *parts: str, without: tuple[str, ...] = (), bases: Bases = BASES, main: tuple[str, ...] = MAIN
) -> Callable[[Command], Command]:
    """A decorator that fills a command's parameter `recipe` from options.

    Args:
        *parts: the parts of the recipe that can be set, in this order; all of them by default.
        without: options that the command does not have, by name (`learning_rate`, `sieve`).
        bases: recipes that `--recipe` chooses from; the first is the default. With one there is
            no such option.
        main: options that stand beside the command's own; the others are in their part's panel.
    """
    options = [
        option
        for part in parts or PARTS
        for setting, rule in rules(PARTS[part]).items()
        if (option := SettingOption(part, setting, rule)).name not in without
    ]
    first = next(iter(bases))

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**given: Any) -> None:
            base = _base(bases, given.pop("recipe", first))
            written = {option: given.pop(option.name) for option in options}
            values = {
                option: option.read(text) for option, text in written.items() if text is not None
            }
            command(recipe=_replaced(base, values), **given)

        shown = [
            option.parameter(
                bases[first](), None if option.name in main else option.part.capitalize()
            )
            for option in options
        ]
        if len(bases) > 1:
            shown.insert(0, _base_parameter(bases, first))
        own = inspect.signature(command, eval_str=True).parameters
        at = list(own).index("recipe")
        kept = [parameter for name, parameter in own.items() if name != "recipe"]
        order = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for parameter in [*kept[:at], *shown, *kept[at:]]
        ]
        run.__signature__ = inspect.Signature(order)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
        return run

    return decorate


def _base(bases: Bases, name: str) -> Recipe:
    if name not in bases:
        raise InvalidArgument(f"--recipe is {name!r}; it may be {', '.join(bases)}")
    return bases[name]()


def _replaced(recipe: Recipe, values: dict[SettingOption, Any]) -> Recipe:
    """The recipe with these settings; the names of parts come before their other settings."""
    off = any(option.name == "sieve" and value == OFF for option, value in values.items())
    idle = [option for option in values if option.part == "sieve" and option.name != "sieve"]
    if off and idle:
        raise InvalidArgument(f"{idle[0].dashed} is given, but --sieve is {OFF}")
    in_order = sorted(values, key=lambda option: option.setting not in NAMED)
    return recipe.replaced(**{option.name: values[option] for option in in_order})


def _base_parameter(bases: Bases, first: str) -> Parameter:
    info = typer.Option(help="The recipe that the options change.", metavar="|".join(bases))
    return _parameter("recipe", str, info).replace(default=first)


def _parameter(name: str, kind: type, info: Any) -> Parameter:
    annotation = Annotated[kind | None, info]  # type: ignore[valid-type]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _number(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _numbers(text: str) -> tuple[Any, ...]:
    """Numbers with commas, or pairs: "20000,1000,10000", "0.2:0.1,0.5:0.14"."""
    items = [tuple(map(_number, item.split(":"))) for item in text.split(",")]
    return tuple(items if ":" in text else (item[0] for item in items))


def _written(value: Any, between: str = ",") -> str:
    if isinstance(value, tuple):
        return between.join(_written(item, ":") for item in value)
    return str(value).lower() if isinstance(value, bool | str) else f"{value:g}"
