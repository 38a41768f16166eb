"""Every error that gradsieve raises on purpose.

A `GradsieveError` names the argument or file, what it was and what it may be, in one line of
printable text. The command line prints its message without a traceback and exits with 2.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gradsieve.text import one_line


class GradsieveError(Exception):
    """Base class of every error that gradsieve raises on purpose."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))


class InvalidArgument(GradsieveError, ValueError):
    """An argument has a value, shape or type that does not fit."""


class InvalidFile(GradsieveError, ValueError):
    """A file is foreign, truncated, damaged or unreadable."""


class MissingExtra(GradsieveError, ImportError):
    """A feature needs an optional package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'gradsieve[{extra}]'")


@contextmanager
def needs_extra(feature: str, extra: str) -> Iterator[None]:
    """Where the imports of an optional feature stand: one that fails is a `MissingExtra`."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(feature, extra) from error


def one_of(argument: str, value: Any, known: Iterable[Any]) -> Any:
    """The value, or an `InvalidArgument` that lists the values that the argument may have.

    >>> one_of("board", "arm", ("arm", "riscv"))
    'arm'
    """
    choices = tuple(known)
    if value in choices:
        return value
    *others, last = map(repr, choices)
    raise InvalidArgument(f"{argument} is {value!r}; it may be {', '.join(others)} or {last}")
