"""Reading Parquet in long form, some ten thousand rows at a time.

Text columns are read as dictionaries, so that a file in which one long label stands for a million
rows costs its label once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve.data._columns import Columns
from gradsieve.data._long_form import LONGEST_NAME, LongForm, Rows, rows_at_once
from gradsieve.data._preparation import Preparation
from gradsieve.data._sequences import Sequences
from gradsieve.data._targets import KindChoice, PerChoice
from gradsieve.errors import InvalidFile, needs_extra
from gradsieve.network import Array


def read_parquet(
    path: Path,
    columns: Columns,
    kind: KindChoice,
    per: PerChoice,
    max_values: int,
    preparation: Preparation = Preparation(),
) -> Sequences:
    with needs_extra("reading Parquet", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        schema = pq.read_schema(path)
        columns = columns.resolved(str(path), schema.names)
        _check_types(path, pa, schema, columns)
        named = [columns.series, *columns.targets, *([columns.time] if columns.time else [])]
        texts = [name for name in named if _is_text(pa, schema.field(name).type)]
        wanted = list(dict.fromkeys([*named, *(columns.features or ())]))
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            if file.metadata.num_rows * len(wanted) > max_values:
                raise InvalidFile(
                    f"{path}: claims {file.metadata.num_rows:,} rows of {len(wanted)} columns, "
                    f"more than {max_values:,} values; split it, or allow more with --max-values"
                )
            table = LongForm(str(path), columns, max_values, preparation)
            for rows in _chunks(path, pa, file, columns, wanted):
                table.add(rows)
    except InvalidFile:
        raise
    except Exception as error:  # Arrow raises nearly every kind of error for damaged bytes
        raise InvalidFile(
            f"{path}: not a readable Parquet file, or not a whole one ({str(error)[:200]})"
        ) from error
    return table.build(kind, per)


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _check_types(path: Path, pa: Any, schema: Any, columns: Columns) -> None:
    types = pa.types
    numbers = (types.is_integer, types.is_floating)
    times = (types.is_timestamp, types.is_date, types.is_duration)
    for names, fitting, said in (
        (
            columns.features or (),
            (*numbers, types.is_boolean, types.is_decimal),
            ", not a number; convert it, or leave it out with --feature",
        ),
        (
            (columns.series, *columns.targets),
            (*numbers, types.is_boolean, partial(_is_text, pa)),
            ", neither text nor a number",
        ),
        (
            (columns.time,) if columns.time else (),
            (*numbers, *times),
            "; a time must be a number, a date or a timestamp",
        ),
    ):
        for name in names:
            kind = value = schema.field(name).type
            if types.is_dictionary(kind) and name in (columns.series, *columns.targets):
                value = kind.value_type
            if not any(fits(value) for fits in fitting):
                raise InvalidFile(f"{path}, column {name!r}: its type is {str(kind)[:60]}{said}")


def _chunks(path: Path, pa: Any, file: Any, columns: Columns, wanted: list[str]) -> Iterator[Rows]:
    first = 1
    for batch in file.iter_batches(
        batch_size=rows_at_once(len(wanted)), columns=wanted, use_threads=False
    ):
        rows = range(first, first + batch.num_rows)
        first += batch.num_rows
        if not batch.num_rows:
            continue
        yield Rows(
            label="row",
            numbers=rows,
            series=[
                "" if text is None else text
                for text in _texts(path, pa, rows, columns.series, batch)
            ],
            times=None
            if columns.time is None
            else _times(path, pa, rows, columns.time, batch.column(columns.time)),
            features=np.stack(
                [_numbers(pa, batch.column(name)) for name in columns.features or ()], axis=1
            ),
            targets=[_texts(path, pa, rows, name, batch) for name in columns.targets],
        )


def _numbers(pa: Any, column: Any) -> Array:
    """float64 with NaN for null, for the table to refuse by row and column."""
    if not pa.types.is_floating(column.type) or column.type.bit_width != 64:
        column = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _texts(path: Path, pa: Any, rows: range, name: str, batch: Any) -> Sequence[str | None]:
    """A column of labels as text; numbers are written as Python writes them, NaN is missing."""
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    known = column.indices.is_valid().to_numpy(zero_copy_only=False)
    indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    # A batch has the dictionary of all batches: only its own part is converted.
    used, places = np.unique(indices[known], return_inverse=True)
    labels: list[str | None] = []
    for place, value in enumerate(column.dictionary.take(pa.array(used)).to_pylist()):
        missing = value is None or value != value or value == ""
        labels.append(None if missing else str(value))
        if not missing and len(labels[-1] or "") > LONGEST_NAME:
            row = rows[int(np.flatnonzero(known)[np.flatnonzero(places == place)[0]])]
            raise InvalidFile(
                f"{path}, row {row}, column {name!r}: a text of {len(str(value))} characters; at "
                f"most {LONGEST_NAME} are taken"
            )
    texts: list[str | None] = [None] * len(indices)
    for row, place in zip(np.flatnonzero(known).tolist(), places.tolist(), strict=True):
        texts[row] = labels[place]
    return texts


def _times(path: Path, pa: Any, rows: range, name: str, column: Any) -> Sequence[int | float]:
    """Numbers as they are; dates and timestamps as whole numbers, which lose nothing."""
    types = pa.types
    if types.is_date32(column.type):
        column = column.cast(pa.int32())
    if not (types.is_floating(column.type) or types.is_integer(column.type)):
        column = column.cast(pa.int64())
    missing = np.flatnonzero(np.isnan(_numbers(pa, column)))
    if missing.size:
        raise InvalidFile(
            f"{path}, row {rows[int(missing[0])]}, column {name!r}: the time is missing"
        )
    return list(column.to_pylist())
