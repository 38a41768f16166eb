"""The three versions of a task behind published numbers, and their lengths.

The same task name stands for different sequences in different papers, so a score means nothing
without its convention.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from gradsieve.errors import InvalidArgument, one_of

Convention = Literal["author", "pascanu", "hochreiter"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)


def checked_convention(convention: str) -> Convention:
    return one_of("convention", convention, CONVENTIONS)  # type: ignore[no-any-return]


def checked_length(
    name: str, length: int, convention: Convention, shortest: Mapping[Convention, int]
) -> int:
    """`length`, if every position of this convention has its place in so short a sequence."""
    checked_integer("length", length, 1)
    if length < shortest[convention]:
        raise InvalidArgument(
            f"length is {length}; {name} by the {convention} convention needs at least "
            f"{shortest[convention]} steps"
        )
    return int(length)


def checked_integer(argument: str, value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidArgument(f"{argument} is {value!r}; it must be an integer")
    if value < least:
        raise InvalidArgument(f"{argument} is {value}; it must be at least {least}")
    return int(value)


def percent(length: int, share: int) -> int:
    """`share` percent of a length, halves rounded up, in integers so that no float decides."""
    return (length * share + 50) // 100
