"""Settings as values: dataclass fields that carry their own help and the values they may have.

A group of settings is a frozen dataclass that derives from `Settings`. Each field has its help and
its allowed values; the check, the command line's options and the documentation read them there.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Self, get_type_hints

from gradsieve.errors import InvalidArgument


@dataclass(frozen=True)
class Rule:
    """The values that one setting may have, and its help."""

    help: str
    choices: tuple[Any, ...] = ()
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    whole: bool = False
    infinite: bool = False  # whether infinity is a value too
    none: bool = False  # whether None is a value too
    word: str = ""  # that may stand for a number
    shape: str = ""  # for a value of several numbers: how it is written, and who checks it

    def allows(self, value: Any) -> bool:
        if value is None:
            return self.none
        if self.shape:
            return True
        if self.choices:
            return value in self.choices
        if self.word and value == self.word:
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if not (math.isfinite(value) or (self.infinite and value == math.inf)):
            return False
        return (
            (not self.whole or value == int(value))
            and (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.below is None or value < self.below)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        """The allowed values in words: "a number above 0 and at most 1, or None"."""
        if self.choices:
            said = ", ".join(map(repr, self.choices))
        elif self.shape:
            said = self.shape
        else:
            bounds = (
                ("above", self.above),
                ("of at least", self.least),
                ("below", self.below),
                ("at most", self.most),
            )
            limits = " and ".join(
                f"{word} {bound:g}" for word, bound in bounds if bound is not None
            )
            said = f"{'a whole number' if self.whole else 'a number'} {limits}".rstrip()
            said += f", or {self.word!r}" if self.word else ""
        return said + (", or None" if self.none else "")


def setting(default: Any, help: str, **rule: Any) -> Any:
    """A dataclass field with its help and its `Rule`."""
    return field(default=default, metadata={"rule": Rule(help, **rule)})


class Settings:
    """Base of a frozen dataclass whose fields were made by `setting`: checks them, and is JSON."""

    def __post_init__(self) -> None:
        for name, rule in rules(type(self)).items():
            value = getattr(self, name)
            if not rule.allows(value):
                raise InvalidArgument(f"{name} is {value!r}; it must be {rule}")
            if rule.whole and value is not None:
                object.__setattr__(self, name, int(value))

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain JSON: lists in place of tuples."""
        return {name: plain(getattr(self, name)) for name in rules(type(self))}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """The settings from `as_dict`'s JSON; an unknown name is refused."""
        if not isinstance(values, dict):
            raise InvalidArgument(f"{cls.__name__} is {values!r}; it must be an object")
        unknown = sorted(set(values) - set(rules(cls)))
        if unknown:
            raise InvalidArgument(
                f"{cls.__name__} has no setting {unknown[0]!r}; it has {', '.join(rules(cls))}"
            )
        return cls(**{name: _tuples(value) for name, value in values.items()})


def rules(group: type) -> dict[str, Rule]:
    """The rule of each setting of a group, in the order of its fields."""
    return {item.name: item.metadata["rule"] for item in dataclasses.fields(group)}


def types(group: type) -> dict[str, Any]:
    """The type of each setting of a group."""
    hints = get_type_hints(group)
    return {item.name: hints[item.name] for item in dataclasses.fields(group)}


def plain(value: Any) -> Any:
    """A setting's value as JSON has it; infinity, which JSON lacks, as "inf" or "-inf"."""
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(part) for part in value)
    return float(value) if value in ("inf", "-inf") else value
