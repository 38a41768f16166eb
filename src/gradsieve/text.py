"""Text from strangers, made safe for a terminal: names and messages that a file can choose."""

from __future__ import annotations


def printable(text: str, keep: str = "\n\t") -> str:
    """The text with every character that is not printable written as its escape.

    Terminals obey control characters, and bidirectional marks reorder what a person reads.

    >>> printable("left\\x1b[31m")
    'left\\\\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in keep else repr(character)[1:-1]
        for character in text
    )


def one_line(text: str) -> str:
    """Printable text without line breaks."""
    return printable(" ".join(text.split()) if "\n" in text else text, keep="")
