"""Text: that of strangers made safe for a terminal, and tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


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


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(table(["task", "T"], [["adding", "100"]]), end="")
    | task | T |
    |---|---|
    | adding | 100 |
    """
    rows = [f"| {' | '.join(cells)} |" for cells in (head, *lines)]
    return "\n".join([rows[0], "|---" * len(head) + "|", *rows[1:]]) + "\n"
