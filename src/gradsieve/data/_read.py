"""`read`, for every format: the file's ending chooses the reader."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np

from gradsieve.data._columns import Columns
from gradsieve.data._csv import read_csv
from gradsieve.data._npz import read_npz
from gradsieve.data._parquet import read_parquet
from gradsieve.data._preparation import Preparation
from gradsieve.data._sequences import Sequences
from gradsieve.data._targets import KindChoice, PerChoice
from gradsieve.data._ts import read_ts
from gradsieve.errors import InvalidArgument, InvalidFile, one_of

ENDINGS = (".npz", ".csv", ".tsv", ".parquet", ".pq", ".ts")
MAX_VALUES = 100_000_000  # 0.8 GB of float64; reading takes about three times as much at its peak


def read(
    path: str | os.PathLike[str],
    *,
    kind: KindChoice = "auto",
    per: PerChoice = "auto",
    columns: Columns | None = None,
    preparation: Preparation | None = None,
    max_values: int = MAX_VALUES,
) -> Sequences:
    """Read sequences and their targets from a file.

    Args:
        path: NPZ, CSV or Parquet in long form, or a UCR/aeon `.ts` file.
        kind: whether targets are classes or quantities; "auto" looks at them.
        per: one target a series or a step; "auto" looks at them.
        columns: of a CSV or Parquet file, which column is what.
        preparation: how missing inputs, unequal spacing and unequal lengths are treated.
        max_values: refuse a file with more values than this.
    """
    file = Path(path)
    for name, value, known in (("kind", kind, KindChoice), ("per", per, PerChoice)):
        one_of(name, value, get_args(known))
    _check(file)
    ending, prepared = file.suffix.lower(), preparation or Preparation()
    if ending == ".ts" and per == "step":
        raise InvalidFile(f"{file}: a .ts file has one target a series, none at every step")
    if prepared.missing != "refuse" and ending in (".npz", ".ts"):
        raise InvalidFile(
            f"{file}: missing is {prepared.missing!r}, which is for tables (CSV, Parquet); fill "
            "the values in"
        )
    try:
        with np.errstate(all="ignore"):  # values that are not finite are refused by row and column
            data = _read(file, kind, per, columns or Columns(), max_values, prepared)
    except MemoryError as error:
        raise InvalidFile(f"{file}: needs more memory than there is; split it") from error
    interval = data.preparation.interval
    try:
        return replace(data, preparation=replace(prepared, interval=interval))
    except InvalidArgument as error:
        raise InvalidFile(f"{file}: {error}") from error


def _check(file: Path) -> None:
    """Refuse a file that no reader takes: another ending, no file, an empty one."""
    if file.suffix.lower() not in ENDINGS:
        raise InvalidFile(
            f"{file}: the ending {file.suffix!r} is not one that is read; it may be "
            f"{', '.join(ENDINGS)}"
        )
    try:
        regular, empty = file.is_file(), file.is_file() and file.stat().st_size == 0
    except OSError as error:
        raise InvalidFile(f"{file}: cannot be read ({error.strerror or error})") from error
    if not regular:
        what = "a folder or a device, not a file" if file.exists() else "no such file"
        raise InvalidFile(f"{file}: {what}")
    if empty:
        raise InvalidFile(f"{file}: the file is empty")


def _read(
    file: Path,
    kind: KindChoice,
    per: PerChoice,
    columns: Columns,
    max_values: int,
    preparation: Preparation,
) -> Sequences:
    match file.suffix.lower():
        case ".npz":
            return read_npz(file, kind, per, max_values)
        case ".csv" | ".tsv":
            return read_csv(file, columns, kind, per, max_values, preparation)
        case ".parquet" | ".pq":
            return read_parquet(file, columns, kind, per, max_values, preparation)
    return read_ts(file, kind, max_values)
