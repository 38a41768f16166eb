"""Arrays in safetensors files that carry a checksum of themselves.

The header begins with the SHA-256 of the whole file, taken with zeros in the checksum's place, so
that no byte can change unnoticed. The library writes metadata in an order that changes from process
to process; here it is sorted, so that the same arrays make the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_safetensors

from gradsieve.errors import InvalidFile
from gradsieve.files import check_file, open_file

CHECKSUM = "sha256"
START = b'{"__metadata__":{"sha256":"'
ZEROS = b"0" * 64
PIECE = 1 << 20  # bytes read at once


def tensor_bytes(arrays: dict[str, NDArray[Any]], metadata: dict[str, str]) -> bytes:
    """A safetensors file with its checksum, the same bytes every time."""
    plain = to_safetensors(arrays)
    (size,) = struct.unpack("<Q", plain[:8])
    told = {CHECKSUM: ZEROS.decode(), **dict(sorted(metadata.items()))}
    header = {"__metadata__": told, **json.loads(plain[8 : 8 + size])}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the arrays stay aligned to 8 bytes
    content = struct.pack("<Q", len(text)) + text + plain[8 + size :]
    place = 8 + len(START)
    checksum = hashlib.sha256(content).hexdigest().encode()
    return content[:place] + checksum + content[place + len(ZEROS) :]


def read_tensors(
    path: str | os.PathLike[str],
    names: Iterable[str],
    file_format: str,
    kind: str,
    unsealed: bool = False,
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """These arrays of a safetensors file of ours, and its metadata.

    Args:
        path: the file.
        names: of the arrays that it must hold.
        file_format: the format that its metadata must name.
        kind: the word for such a file in messages.
        unsealed: whether a file without a checksum is read too.
    """
    check_file(path)
    try:
        with safe_open(os.fspath(path), framework="np") as file:
            metadata = dict(file.metadata() or {})
            if metadata.get("format") != file_format:
                raise InvalidFile(f"{path}: a safetensors file, but not a {file_format} {kind}")
            if CHECKSUM in metadata or not unsealed:
                _check_seal(path)
                del metadata[CHECKSUM]
            return {name: file.get_tensor(name) for name in names}, metadata
    except (SafetensorError, OSError, MemoryError) as error:
        said = " ".join(str(error).split())[:200]
        raise InvalidFile(f"{path}: not a readable gradsieve {kind} ({said})") from error
    except (TypeError, AttributeError) as error:  # safetensors, for types that NumPy lacks
        raise InvalidFile(f"{path}: holds numbers of an unknown type ({error})") from error


def _check_seal(path: str | os.PathLike[str]) -> None:
    """Compare a file, which safetensors has found to have a header, with its checksum."""
    with open_file(path) as file:
        length = file.read(8)
        header = file.read(struct.unpack("<Q", length)[0])
        checksum = header[len(START) : len(START) + len(ZEROS)]
        found = hashlib.sha256(length + START + ZEROS + header[len(START) + len(ZEROS) :])
        while piece := file.read(PIECE):
            found.update(piece)
    if not header.startswith(START) or found.hexdigest().encode() != checksum:
        raise InvalidFile(f"{path}: its checksum does not match; the file is damaged")
