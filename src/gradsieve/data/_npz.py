"""Reading NPZ archives: `u`, `t` and, for unequal lengths, `lengths`.

Nothing is believed before it is checked: an array is allocated only when the archive's member is
as large as the array's header says and all members together stay under the limit. Pickled objects
are never loaded.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve.data._sequences import Sequences
from gradsieve.data._targets import KindChoice, PerChoice, as_classes
from gradsieve.errors import InvalidFile
from gradsieve.network import Array

NAMES = ("u", "t", "lengths", "features")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy's
HEADER = 1 << 16  # bytes within which the header of an array must end
# Entries of a header, as `numpy.savez` writes it: read by pattern, since it is Python source.
DTYPE = re.compile(r"""['"]descr['"]\s*:\s*['"]([<>|=]?[?bBiufcmMOSUVa]\d{0,9}(?:\[\w+\])?)['"]""")
ORDER = re.compile(r"""['"]fortran_order['"]\s*:\s*(True|False)""")
SHAPE = re.compile(r"""['"]shape['"]\s*:\s*\(([\d,\s]{0,200})\)""")


def read_npz(path: Path, kind: KindChoice, per: PerChoice, max_values: int) -> Sequences:
    arrays = _arrays(path, 8 * max_values)
    for name in ("u", "t"):
        if name not in arrays:
            raise InvalidFile(
                f"{path}: there is no array {name!r}; the archive needs u (N, steps, inputs) and "
                "t, or u (all steps, inputs), lengths (N,) and t"
            )
    values, lengths, kept = _values(path, arrays)
    targets, per_step = _raw_targets(path, arrays, lengths, kept, per)
    numbers, classes = _targets(path, targets, kind)
    features = tuple(str(name)[:1000] for name in arrays.get("features", np.zeros(0)).ravel())
    if features and len(features) != values.shape[1]:
        raise InvalidFile(
            f"{path}: features names {len(features)} inputs where u has {values.shape[1]}"
        )
    return Sequences(
        values=values,
        lengths=lengths,
        targets=numbers,
        per_step=per_step,
        classes=classes,
        features=features,
    )


def _arrays(path: Path, max_bytes: int) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = {name: members[name] for name in NAMES if name in members}
            claimed = sum(info.file_size for info in wanted.values())
            if claimed > max_bytes:
                raise InvalidFile(
                    f"{path}: claims to hold {claimed:,} bytes, more than the {max_bytes:,} that "
                    "are taken; split it, or allow more with --max-values"
                )
            return {name: _array(path, archive, name, info) for name, info in wanted.items()}
    except InvalidFile:
        raise
    except Exception as error:  # zipfile and zlib have no common error for damaged bytes
        raise InvalidFile(
            f"{path}: not a readable NPZ archive, or not a whole one ({str(error)[:200]}); write "
            "it anew with numpy.savez"
        ) from error


def _array(path: Path, archive: zipfile.ZipFile, name: str, info: zipfile.ZipInfo) -> Array:
    if info.compress_type not in METHODS:
        raise InvalidFile(f"{path}: {name} is packed in a way that NumPy does not write")
    with archive.open(info) as member:
        shape, fortran, dtype, start = _npy_header(path, name, member.read(HEADER))
    if dtype.hasobject:
        raise InvalidFile(
            f"{path}: {name} holds Python objects, which are not loaded; for unequal lengths save "
            "u=numpy.concatenate(sequences) and lengths=[len(s) for s in sequences]"
        )
    if math.prod(shape) * dtype.itemsize != info.file_size - start:
        raise InvalidFile(
            f"{path}: {name} claims shape {shape} of {dtype} but holds "
            f"{info.file_size - start:,} bytes; the archive is damaged"
        )
    with archive.open(info) as member:
        content = member.read()
    if dtype.kind == "U":
        points = np.frombuffer(content, dtype=f"{dtype.str[0]}u4", offset=start)
        if ((points > 0x10FFFF) | ((points >= 0xD800) & (points < 0xE000))).any():
            raise InvalidFile(f"{path}: {name} holds text of bytes that are no characters")
    flat = np.frombuffer(content, dtype=dtype, offset=start)
    return flat.reshape(shape, order="F" if fortran else "C")


def _npy_header(
    path: Path, name: str, content: bytes
) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Shape, whether in Fortran's order, dtype, and where the array's bytes begin."""
    layout = {b"\x93NUMPY\x01\x00": "<H", b"\x93NUMPY\x02\x00": "<I"}.get(content[:8])
    try:
        if layout is None:
            raise ValueError("it begins with other bytes")
        (size,) = struct.unpack_from(layout, content, 8)
        start = 8 + struct.calcsize(layout) + size
        text = content[start - size : start].decode("latin-1")
        found = [pattern.search(text) for pattern in (SHAPE, ORDER, DTYPE)]
        if start > len(content) or None in found:
            raise ValueError("it must say shape, order and one type")
        shape_text, order, kind = (match[1] for match in found if match)
        shape = tuple(int(size) for size in shape_text.replace(" ", "").split(",") if size)
        dtype = np.dtype(kind)
        if dtype.itemsize == 0 or len(shape) > 4 or max(shape, default=0) > 1 << 48:
            raise ValueError(f"shape {shape}, dtype {dtype}")
    except (struct.error, ValueError, TypeError) as error:
        raise InvalidFile(
            f"{path}: the header of {name} is not that of an array ({str(error)[:200]})"
        ) from error
    return shape, order == "True", dtype, start


def _values(path: Path, arrays: dict[str, Array]) -> tuple[Array, Array, Array | None]:
    """All steps (steps, I), the lengths (N,), and which steps of a padded u are kept."""
    u = arrays["u"]
    if u.dtype.kind not in "fiub":
        raise InvalidFile(f"{path}: u has dtype {u.dtype}; it must hold real numbers")
    if u.ndim not in (2, 3) or 0 in u.shape:
        raise InvalidFile(
            f"{path}: u has shape {u.shape}; it must be (N, steps, inputs), (N, steps), or with "
            "lengths (all steps, inputs), none of them 0"
        )
    lengths = _lengths(path, arrays, u)
    kept = None
    if u.ndim == 3 and "lengths" in arrays:
        kept = np.arange(u.shape[1]) < lengths[:, None]
        flat = u[kept]
    elif "lengths" in arrays:
        flat = u
    else:
        flat = u.reshape(-1, u.shape[2] if u.ndim == 3 else 1)
    flat = flat.astype(np.float64)
    if not np.isfinite(flat).all():
        step, column = (int(index) for index in np.argwhere(~np.isfinite(flat))[0])
        series = int(np.searchsorted(np.cumsum(lengths), step, side="right"))
        within = step - int(lengths[:series].sum())
        raise InvalidFile(
            f"{path}: u is missing or infinite at sequence {series}, step {within}, input {column} "
            "(counted from 0); fill it in, or drop the sequence"
        )
    return flat, lengths, kept


def _lengths(path: Path, arrays: dict[str, Array], u: Array) -> Array:
    if "lengths" not in arrays:
        return np.full(u.shape[0], u.shape[1], dtype=np.int64)
    lengths = arrays["lengths"]
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or not lengths.size:
        raise InvalidFile(
            f"{path}: lengths has dtype {lengths.dtype} and shape {lengths.shape}; it must be a "
            "list of whole numbers"
        )
    if int(lengths.min()) < 1 or int(lengths.max()) > u.shape[0 if u.ndim == 2 else 1]:
        raise InvalidFile(
            f"{path}: lengths go from {lengths.min()} to {lengths.max()}; each must be at least 1 "
            f"and fit into u of shape {u.shape}"
        )
    lengths = lengths.astype(np.int64)
    if u.ndim == 2 and int(lengths.sum()) != len(u):
        raise InvalidFile(f"{path}: lengths add up to {lengths.sum()}, but u has {len(u)} steps")
    if u.ndim == 3 and len(lengths) != len(u):
        raise InvalidFile(f"{path}: {len(lengths)} lengths for the {len(u)} sequences of u")
    return lengths


def _raw_targets(
    path: Path, arrays: dict[str, Array], lengths: Array, kept: Array | None, per: PerChoice
) -> tuple[Array, bool]:
    """Targets (count,) or (count, O), one a sequence or one a step."""
    t = arrays["t"]
    if 0 in t.shape:
        raise InvalidFile(f"{path}: t has shape {t.shape}; there must be a target")
    count, steps = len(lengths), int(lengths.sum())
    grid = kept.shape if kept is not None else (count, int(lengths[0]))
    padded = kept is not None or arrays["u"].ndim == 3 or "lengths" not in arrays
    if per != "series":
        if padded and t.ndim in (2, 3) and t.shape[:2] == grid and t.shape[1] > 1:
            return (t[kept] if kept is not None else t.reshape(-1, *t.shape[2:])), True
        if "lengths" in arrays and t.ndim in (1, 2) and len(t) == steps != count:
            return t, True
    if per != "step" and t.ndim in (1, 2) and len(t) == count:
        return t, False
    raise InvalidFile(
        f"{path}: t has shape {t.shape}; for {count} sequences it must be ({count},) or "
        f"({count}, outputs), or one a step: {(*grid,)} or ({steps},), with outputs after it"
    )


def _targets(path: Path, t: Array, kind: KindChoice) -> tuple[Array, tuple[str, ...] | None]:
    if t.dtype.kind not in "fiubUS":
        raise InvalidFile(f"{path}: t has dtype {t.dtype}; it must hold numbers or text")
    if t.dtype.kind in "US" and kind == "regression":
        raise InvalidFile(f"{path}: t holds text ({t.dtype}); regression needs numbers")
    if t.dtype.kind == "f" and not np.isfinite(t).all():
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(t))[0])
        raise InvalidFile(f"{path}: t is missing or infinite at {where}; give every target")
    if kind == "auto":
        kind = "regression" if t.dtype.kind == "f" else "classification"
    if kind == "regression":
        return t.astype(np.float64).reshape(len(t), -1), None
    if t.ndim == 2 and t.shape[1] == 1:
        t = t[:, 0]
    if t.ndim != 1:
        raise InvalidFile(f"{path}: t has shape {t.shape}; classes have one number each")
    if t.dtype.kind == "S":
        t = np.char.decode(t, "utf-8", errors="replace")
    distinct, codes = np.unique(t, return_inverse=True)
    return as_classes(codes.astype(np.int64), [str(label)[:1000] for label in distinct])
