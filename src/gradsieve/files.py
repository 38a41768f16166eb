"""Files: written so that they are there whole or not at all, and read without trust.

Weights are safetensors and everything else is JSON, so a file from a stranger can be read but
never run; whatever is wrong with one is an `InvalidFile`.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from gradsieve.errors import GradsieveError, InvalidFile


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace `path` by `content`; a crash, a full disk or a kill leaves the old file as it was."""
    data = content.encode() if isinstance(content, str) else content
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path))
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise GradsieveError(f"{path}: cannot be written ({error.strerror or error})") from error
    except BaseException:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        raise


def remove_leftovers(path: Path) -> None:
    """Remove what kills in the middle of `write_atomically` left beside `path`."""
    for leftover in path.parent.glob(f"{_prefix(path)}*"):
        leftover.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}.partial-"


def tensor_bytes(arrays: dict[str, NDArray[Any]], metadata: dict[str, str]) -> bytes:
    """A safetensors file, the same bytes every time.

    The library writes metadata in an order that changes from process to process, so here it is put
    into the header afterwards, sorted.
    """
    plain = to_safetensors(arrays)
    (size,) = struct.unpack("<Q", plain[:8])
    header = {"__metadata__": dict(sorted(metadata.items())), **json.loads(plain[8 : 8 + size])}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays stay aligned to 8 bytes
    return struct.pack("<Q", len(text)) + text + plain[8 + size :]


def read_tensors(
    path: str | os.PathLike[str], names: Iterable[str], file_format: str, kind: str
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """These arrays of a safetensors file of ours, and its metadata."""
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != file_format:
                raise InvalidFile(f"{path}: a safetensors file, but not a gradsieve {kind}")
            return {name: file.get_tensor(name) for name in names}, metadata
    except FileNotFoundError as error:
        raise InvalidFile(f"{path}: no such file") from error
    except (SafetensorError, OSError) as error:
        raise InvalidFile(f"{path}: not a readable gradsieve {kind} ({error})") from error
    except (TypeError, AttributeError) as error:  # safetensors, for types that NumPy lacks
        raise InvalidFile(f"{path}: holds numbers of an unknown type ({error})") from error


def parse_object(path: str | os.PathLike[str], text: str | bytes | None) -> dict[str, Any]:
    """The JSON object that was found in this file."""
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path}: not readable as JSON ({error})") from error
    if not isinstance(value, dict):
        raise InvalidFile(f"{path}: not a JSON object")
    return value
