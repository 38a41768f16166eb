"""Reading `.ts` files of the UCR/UEA archives, the format of aeon and sktime.

A header of `@` lines, then a sequence a line: its dimensions separated by colons, their values by
commas, the class or value last. Time stamps inside the values (`@timeStamps true`) are not read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gradsieve.data._long_form import LONGEST_NAME
from gradsieve.data._sequences import Sequences
from gradsieve.data._targets import KindChoice, as_classes, as_numbers, looks_like_classes, number
from gradsieve.data._text import open_text
from gradsieve.errors import InvalidFile
from gradsieve.network import Array


@dataclass(frozen=True)
class Header:
    labels: tuple[str, ...] | None  # classes that the file declares
    regression: bool


def read_ts(path: Path, kind: KindChoice, max_values: int) -> Sequences:
    source = str(path)
    blocks: list[Array] = []
    texts: dict[str, int] = {}
    codes = array("q")
    read = 0
    with open_text(path) as (_, lines):
        numbered = enumerate(lines, start=1)
        header = _header(source, numbered)
        if header.labels and kind != "regression":
            texts = {label: code for code, label in enumerate(header.labels)}
        for line, text in numbered:
            text = text.strip()
            if not text or text[0] in "#%":
                continue
            *dimensions, target = text.split(":")
            if not dimensions:
                raise InvalidFile(
                    f"{source}, line {line}: no ':' before a target; each line is "
                    "'values:target', with a ':' between dimensions"
                )
            block = _block(source, line, dimensions)
            if blocks and block.shape[1] != blocks[0].shape[1]:
                raise InvalidFile(
                    f"{source}, line {line}: {block.shape[1]} dimensions where the lines before "
                    f"have {blocks[0].shape[1]}"
                )
            read += block.size
            if read > max_values:
                raise InvalidFile(
                    f"{source}, line {line}: more than {max_values:,} values; split the file, or "
                    "allow more with --max-values"
                )
            blocks.append(block)
            codes.append(_code(source, line, target.strip(), texts, header, kind))
    if not blocks:
        raise InvalidFile(f"{source}: there is no sequence after @data")
    targets, classes = _targets(source, np.frombuffer(codes, dtype=np.int64), texts, header, kind)
    return Sequences(
        values=np.concatenate(blocks),
        lengths=np.array([len(block) for block in blocks], dtype=np.int64),
        targets=targets,
        per_step=False,
        classes=classes,
        features=tuple(f"dimension {n}" for n in range(1, blocks[0].shape[1] + 1)),
    )


def _header(source: str, numbered: Iterator[tuple[int, str]]) -> Header:
    labels: tuple[str, ...] | None = None
    regression = False
    for line, text in numbered:
        words = text.split()
        if not words or words[0][0] in "#%":
            continue
        tag, *values = words
        match tag.lower():
            case "@data":
                return Header(labels, regression)
            case "@classlabel" if values and values[0].lower() == "true":
                labels = tuple(dict.fromkeys(values[1:])) or None
            case "@targetlabel" if values and values[0].lower() == "true":
                regression = True
            case "@timestamps" if values and values[0].lower() == "true":
                raise InvalidFile(
                    f"{source}, line {line}: values with time stamps are not read; write them "
                    "without, or as CSV in long form"
                )
            case name if not name.startswith("@"):
                raise InvalidFile(
                    f"{source}, line {line}: {text[:40].strip()!r} stands before @data; the header "
                    "of a .ts file has lines that begin with @"
                )
    raise InvalidFile(f"{source}: there is no @data line; is it a .ts file, and whole?")


def _block(source: str, line: int, dimensions: list[str]) -> Array:
    """One sequence, (steps, dimensions)."""
    columns: list[Array] = []
    for position, text in enumerate(dimensions, start=1):
        values = text.split(",")
        try:
            if "_" in text:
                raise ValueError
            column = np.array([float(value) for value in values])
        except ValueError:
            bad = next(value for value in values if number(value) is None)
            what = "missing" if bad.strip() in ("", "?") else f"{bad[:60]!r}, not a number"
            raise InvalidFile(
                f"{source}, line {line}, dimension {position}, step {values.index(bad) + 1}: the "
                f"value is {what}; correct it, or drop the line"
            ) from None
        if not np.isfinite(column).all():
            step = int(np.flatnonzero(~np.isfinite(column))[0]) + 1
            raise InvalidFile(
                f"{source}, line {line}, dimension {position}, step {step}: the value is missing "
                "or infinite; fill it in, or drop the line"
            )
        if columns and len(column) != len(columns[0]):
            raise InvalidFile(
                f"{source}, line {line}: dimension {position} has {len(column)} steps where the "
                f"first has {len(columns[0])}"
            )
        columns.append(column)
    return np.stack(columns, axis=1)


def _code(
    source: str, line: int, target: str, texts: dict[str, int], header: Header, kind: KindChoice
) -> int:
    if not target or target == "?":
        raise InvalidFile(f"{source}, line {line}: the target is missing; add it or drop the line")
    if len(target) > LONGEST_NAME:
        raise InvalidFile(f"{source}, line {line}: a target of {len(target)} characters")
    if header.labels and kind != "regression" and target not in texts:
        raise InvalidFile(
            f"{source}, line {line}: class {target[:60]!r} is not among those that @classLabel "
            f"declares: {', '.join(header.labels[:20])}"
        )
    return texts.setdefault(target, len(texts))


def _targets(
    source: str, codes: Array, texts: dict[str, int], header: Header, kind: KindChoice
) -> tuple[Array, tuple[str, ...] | None]:
    if kind == "auto":
        classes = bool(header.labels) or (
            not header.regression and looks_like_classes(tuple(texts), len(codes))
        )
        kind = "classification" if classes else "regression"
    if kind == "regression":
        return as_numbers(source, codes, tuple(texts))[:, None], None
    return as_classes(codes, tuple(texts))
