"""The same small data set in every format, for the readers' tests."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from gradsieve.network import Array

LENGTHS = (4, 7, 5, 6)
CLASSES = ("left", "right", "left", "right")


def sequences() -> list[Array]:
    generator = np.random.default_rng(7)
    return [generator.standard_normal((length, 2)).round(4) for length in LENGTHS]


def csv_text(separator: str = ",") -> str:
    rows = [("series", "time", "x", "y", "target")]
    for name, sequence, label in zip("abcd", sequences(), CLASSES, strict=True):
        rows += [
            (name, str(10 * step), repr(float(x)), repr(float(y)), label)
            for step, (x, y) in enumerate(sequence)
        ]
    return "\n".join(separator.join(row) for row in rows) + "\n"


def ts_text() -> str:
    lines = [
        "# made for a test",
        "@problemName Small",
        "@timeStamps false",
        "@univariate false",
        "@classLabel true left right",
        "@data",
    ]
    for sequence, label in zip(sequences(), CLASSES, strict=True):
        dimensions = [",".join(repr(float(value)) for value in column) for column in sequence.T]
        lines.append(":".join([*dimensions, label]))
    return "\n".join(lines) + "\n"


def npz_bytes() -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, u=np.concatenate(sequences()), lengths=np.array(LENGTHS), t=np.array(CLASSES)
    )
    return buffer.getvalue()


def parquet_bytes() -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    values = np.concatenate(sequences())
    table = pa.table(
        {
            "series": [
                name for name, length in zip("abcd", LENGTHS, strict=True) for _ in range(length)
            ],
            "time": np.concatenate([np.arange(length) for length in LENGTHS]),
            "x": values[:, 0],
            "y": values[:, 1],
            "target": [
                label for label, length in zip(CLASSES, LENGTHS, strict=True) for _ in range(length)
            ],
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def contents() -> dict[str, bytes]:
    """Valid files by their ending."""
    return {
        ".csv": csv_text().encode(),
        ".tsv": csv_text("\t").encode(),
        ".ts": ts_text().encode(),
        ".npz": npz_bytes(),
        ".parquet": parquet_bytes(),
    }


def written(folder: Path, ending: str, content: bytes | str) -> Path:
    path = folder / f"data{ending}"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
