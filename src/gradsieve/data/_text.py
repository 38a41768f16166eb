"""Opening a text file so that neither its encoding nor one endless line can do harm."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from gradsieve.errors import InvalidFile

LONGEST_LINE = 1 << 24  # characters: some million values, and no more memory than that takes
FOREIGN = {
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
    b"\x1f\x8b": "gzip",
    b"PAR1": "Parquet",
}


@contextmanager
def open_text(path: Path) -> Iterator[tuple[IO[str], Iterator[str]]]:
    """The open file and its lines; an error in reading becomes an InvalidFile."""
    try:
        with path.open("rb") as raw:
            start = raw.read(4)
        for mark, what in FOREIGN.items():
            if start.startswith(mark):
                raise InvalidFile(f"{path}: this is {what}, not text; save it as UTF-8 text")
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file, _lines(path, file)
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"{path}: byte {error.object[error.start]:#04x} is not UTF-8; save the file as UTF-8 "
            f"text{_line_of_damage(path)}"
        ) from error
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read ({error.strerror or error})") from error


def _lines(path: Path, file: IO[str]) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise InvalidFile(
                f"{path}, line {number}: longer than {LONGEST_LINE:,} characters; is it text?"
            )
        yield line


def _line_of_damage(path: Path) -> str:
    """Where the text first is not UTF-8: found by a second pass, line by line."""
    with path.open("rb") as raw:
        number = 0
        while line := raw.readline(LONGEST_LINE):
            number += 1
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return f" (first seen on line {number})"
    return ""
