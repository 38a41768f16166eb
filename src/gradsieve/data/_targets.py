"""From targets as they were written to classes or numbers.

A reader knows its targets as text and hands over codes into a list of distinct texts, so that a
million equal labels cost one string. Whether they are classes is decided here, once, for every
format, and can always be said instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from gradsieve.errors import InvalidFile
from gradsieve.network import Array

KindChoice = Literal["auto", "classification", "regression"]
PerChoice = Literal["auto", "series", "step"]

MOST_GUESSED_CLASSES = 20


def number(text: str) -> float | None:
    """The number that a text says, or None; Python's own `1_000` is no number in a data file."""
    if "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def looks_like_classes(texts: Sequence[str], count: int) -> bool:
    """Whether `count` targets with these distinct texts are labels rather than measurements."""
    numbers = [number(text) for text in texts]
    if any(value is None for value in numbers):
        return True
    whole = all(value is not None and value.is_integer() for value in numbers)
    return whole and len(texts) <= MOST_GUESSED_CLASSES and 2 * len(texts) <= count


def as_classes(codes: Array, texts: Sequence[str]) -> tuple[Array, tuple[str, ...]]:
    """Class numbers and the names of the classes, in numerical order where they are numbers."""
    numbers = [number(text) for text in texts]
    if all(value is not None and math.isfinite(value) for value in numbers):
        order = sorted(range(len(texts)), key=lambda code: (numbers[code], texts[code]))
    else:
        order = sorted(range(len(texts)), key=lambda code: texts[code])
    rank = np.empty(len(texts), dtype=np.int64)
    rank[order] = np.arange(len(texts))
    return rank[codes], tuple(texts[code] for code in order)


def as_numbers(source: str, codes: Array, texts: Sequence[str]) -> Array:
    """The targets as float64."""
    numbers = np.empty(len(texts))
    for code, text in enumerate(texts):
        value = number(text)
        if value is None or not math.isfinite(value):
            raise InvalidFile(
                f"{source}: the target {text[:60]!r} is not a finite number; correct it, or say "
                "kind 'classification' if it is a label"
            )
        numbers[code] = value
    return numbers[codes]
