"""`Recipe`: a way of training, as one value that can be compared, stored and replaced in part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from gradsieve.errors import InvalidArgument
from gradsieve.recipe.budget import Budget
from gradsieve.recipe.curriculum import Curriculum
from gradsieve.recipe.optimiser import Optimiser
from gradsieve.recipe.schedule import Schedule
from gradsieve.settings import Settings, rules
from gradsieve.sieve import Sieve
from gradsieve.start import Start

PARTS: dict[str, type[Settings]] = {
    "start": Start,
    "optimiser": Optimiser,
    "sieve": Sieve,
    "schedule": Schedule,
    "curriculum": Curriculum,
    "budget": Budget,
}
RENAMED = {  # settings by their names in version 0.1
    "warmup": "warm_up",
    "cooldown": "cool_down",
    "retreat": "roll_back",
    "rate_by_length": "rate_power",
    "batch_by_length": "batch_power",
}
OFF = "off"  # the name of a recipe without a sieve


@dataclass(frozen=True)
class Recipe:
    """How a network begins and is trained.

    By default it is the paper's protocol without a sieve; `gradsieve.recipes` has the others.

    >>> recipe = Recipe().replaced(sieve="hold", clip=1.0, epochs=20)
    >>> recipe.sieve.policy, recipe.optimiser.clip, recipe.budget.epochs
    ('hold', 1.0, 20)
    """

    start: Start = Start()
    optimiser: Optimiser = Optimiser()
    sieve: Sieve | None = None
    schedule: Schedule = Schedule()
    curriculum: Curriculum = Curriculum()
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        for name, part in PARTS.items():
            value = getattr(self, name)
            if not (isinstance(value, part) or (name == "sieve" and value is None)):
                or_none = ", or None" if name == "sieve" else ""
                raise InvalidArgument(
                    f"{name} is {value!r}; it must be a gradsieve.{part.__name__}{or_none}"
                )

    def replaced(self, **settings: Any) -> Recipe:
        """The recipe with single settings, or whole parts, replaced.

        `sieve` may also be a policy's name or "off", and `start` the name of a start.
        """
        parts = {name: _part(name, value) for name, value in settings.items() if name in PARTS}
        groups: dict[str, dict[str, Any]] = {}
        for name, value in settings.items():
            if name not in PARTS:
                groups.setdefault(_part_of(name), {})[name] = value
        if "sieve" in groups and parts.get("sieve", self) is None:
            named = ", ".join(groups["sieve"])
            raise InvalidArgument(f"sieve is off; {named} cannot be set beside it")
        recipe = replace(self, **parts)
        changed: dict[str, Any] = {
            part: replace(getattr(recipe, part) or Sieve(), **values)  # which turns a sieve on
            for part, values in groups.items()
        }
        return replace(recipe, **changed)

    def as_dict(self) -> dict[str, Any]:
        """The recipe as nested JSON; `from_dict` reads it back."""
        parts = {name: getattr(self, name) for name in PARTS}
        return {name: None if part is None else part.as_dict() for name, part in parts.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Recipe:
        """The recipe from `as_dict`'s JSON; a part or setting left out has its default."""
        if not isinstance(values, dict) or not set(values) <= set(PARTS):
            raise InvalidArgument(f"recipe is {values!r}; it may have the parts {', '.join(PARTS)}")
        return cls(
            **{
                name: None if value is None else PARTS[name].from_dict(value)  # type: ignore[arg-type]
                for name, value in values.items()
            }
        )

    def flat(self) -> dict[str, Any]:
        """Every setting by its own name; those of a sieve that is off are None."""
        return {
            name: getattr(getattr(self, part), name, None)
            for part, group in PARTS.items()
            for name in rules(group)
        }

    def differing(self, other: Recipe) -> dict[str, tuple[Any, Any]]:
        """The settings in which two recipes differ: name, own value, the other's."""
        own, its = self.flat(), other.flat()
        return {name: (own[name], its[name]) for name in own if own[name] != its[name]}


def _part(name: str, value: Any) -> Any:
    if name == "sieve" and isinstance(value, str):
        return None if value == OFF else Sieve(policy=value)  # type: ignore[arg-type]
    if name == "start" and isinstance(value, str):
        return Start(recurrent=value)  # type: ignore[arg-type]
    return value


def _part_of(setting: str) -> str:
    """The part that has this setting."""
    known = {name: part for part, group in PARTS.items() for name in rules(group)}
    if setting in known:
        return known[setting]
    near = [RENAMED[setting]] if setting in RENAMED else []
    near = near or get_close_matches(setting, [*known, *PARTS], n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InvalidArgument(
        f"{setting!r} is no setting of a recipe; {hint}it has {', '.join([*PARTS, *known])}"
    )
