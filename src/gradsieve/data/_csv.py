"""Reading CSV in long form, a bounded number of bytes at a time.

The separator (comma, semicolon or tab) is the one that the header holds most of. Text is UTF-8.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from gradsieve.data._columns import Columns
from gradsieve.data._long_form import LONGEST_NAME, LongForm, Rows, rows_at_once
from gradsieve.data._preparation import Preparation
from gradsieve.data._sequences import Sequences
from gradsieve.data._targets import KindChoice, PerChoice, number
from gradsieve.data._text import open_text
from gradsieve.errors import InvalidFile
from gradsieve.network import Array

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})


def read_csv(
    path: Path,
    columns: Columns,
    kind: KindChoice,
    per: PerChoice,
    max_values: int,
    preparation: Preparation = Preparation(),
) -> Sequences:
    source = str(path)
    with open_text(path) as (file, lines):
        reader = csv.reader(lines, delimiter=_separator(file), strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if not header:
                raise InvalidFile(f"{source}: the file is empty; it needs a header and rows")
            columns = columns.resolved(source, header)
            table = LongForm(source, columns, max_values, preparation)
            for rows in _chunks(source, reader, header, columns):
                table.add(rows)
        except csv.Error as error:
            raise InvalidFile(
                f"{source}, line {reader.line_num}: not CSV ({error}); look for a quote that is "
                "not closed"
            ) from error
    return table.build(kind, per)


def _separator(file: IO[str]) -> str:
    header = file.readline(1 << 16)
    file.seek(0)
    return max(",;\t", key=header.count)


def _chunks(source: str, reader: Any, header: list[str], columns: Columns) -> Iterator[Rows]:
    """Rows of the table, with the line on which each of them ends."""
    place = {name: position for position, name in enumerate(header)}
    numbered = ((reader.line_num, row) for row in reader if row)
    while chunk := list(islice(numbered, rows_at_once(len(header)))):
        for line, row in chunk:
            if len(row) != len(header):
                raise InvalidFile(
                    f"{source}, line {line}: {len(row)} fields where the header has {len(header)}; "
                    "correct the line"
                )
        lines = [line for line, _ in chunk]
        rows = [row for _, row in chunk]
        yield Rows(
            label="line",
            numbers=lines,
            series=[
                _short(source, line, columns.series, row[place[columns.series]].strip())
                for line, row in chunk
            ],
            times=None
            if columns.time is None
            else [
                _time(source, line, columns.time, row[place[columns.time]]) for line, row in chunk
            ],
            features=_features(source, lines, columns.features or (), place, rows),
            targets=[
                [_target(source, line, name, row[place[name]].strip()) for line, row in chunk]
                for name in columns.targets
            ],
        )


def _features(
    source: str,
    lines: list[int],
    names: Sequence[str],
    place: dict[str, int],
    rows: list[list[str]],
) -> Array:
    """(rows, features); all at once, and by column only where a text is not a plain number."""
    chosen = [place[name] for name in names]
    texts = [[row[position] for position in chosen] for row in rows]
    try:
        if not any("_" in "".join(row) for row in texts):
            numbers = map(float, chain.from_iterable(texts))
            flat = np.fromiter(numbers, dtype=np.float64, count=len(rows) * len(names))
            return flat.reshape(len(rows), len(names))
    except ValueError:
        pass
    columns = zip(*texts, strict=True)
    return np.stack(
        [
            _numbers(source, lines, name, column)
            for name, column in zip(names, columns, strict=True)
        ],
        axis=1,
    )


def _numbers(source: str, lines: list[int], name: str, texts: tuple[str, ...]) -> Array:
    """One column of numbers; a missing one is NaN, for the table to refuse by row and column."""
    values = np.empty(len(texts))
    for position, text in enumerate(texts):
        value = number(text)
        if value is None:
            if text.strip().lower() not in MISSING:
                raise InvalidFile(
                    f"{source}, line {lines[position]}, column {name!r}: {text[:60]!r} is not a "
                    "number; write numbers with a point and no thousands mark, or leave the "
                    "column out with --feature"
                )
            value = np.nan
        values[position] = value
    return values


def _time(source: str, line: int, name: str, text: str) -> int | float | datetime:
    text = text.strip()
    value: float | None = number(text)
    if value is not None and np.isfinite(value):
        return int(text) if text.lstrip("+-").isdecimal() and len(text) < 40 else value
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidFile(
            f"{source}, line {line}, column {name!r}: {text[:60]!r} is not a time; write a number "
            "or a date such as 2024-05-01 or 2024-05-01T12:30:00"
        ) from None


def _target(source: str, line: int, name: str, text: str) -> str | None:
    return _short(source, line, name, text) if text.lower() not in MISSING else None


def _short(source: str, line: int, name: str, text: str) -> str:
    if len(text) > LONGEST_NAME:
        raise InvalidFile(
            f"{source}, line {line}, column {name!r}: a text of {len(text)} characters; at most "
            f"{LONGEST_NAME} are taken"
        )
    return text
