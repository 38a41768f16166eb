"""Files: written so that they are there whole or not at all, and read without trust.

Only regular files are opened: a pipe or a device under a file's name is refused, and never waited
for. Everything that gradsieve stores is JSON or safetensors (`gradsieve.tensors`), so a file from a
stranger can be read but never run; whatever is wrong with one is an `InvalidFile`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gradsieve.errors import GradsieveError, InvalidFile

HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")  # escapes of JSON that are none by themselves


def open_file(path: str | os.PathLike[str], flags: int = os.O_RDONLY) -> IO[bytes]:
    """Open a regular file, never waiting for one; errors are `OSError` and `InvalidFile`."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    kind = os.fstat(handle).st_mode
    if stat.S_ISREG(kind):
        return os.fdopen(handle, "rb" if flags == os.O_RDONLY else "ab")
    os.close(handle)
    what = "a folder" if stat.S_ISDIR(kind) else "a pipe or a device"
    raise InvalidFile(f"{path}: is {what}; it must be a file")


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no reader should open: it is missing, unreadable or not a file."""
    try:
        open_file(path).close()
    except FileNotFoundError as error:
        raise InvalidFile(f"{path}: no such file") from error
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read ({error.strerror or error})") from error


def read_file(path: str | os.PathLike[str]) -> bytes:
    """All of a file; a missing one stays a `FileNotFoundError`."""
    try:
        with open_file(path) as file:
            return file.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read ({error.strerror or error})") from error


@contextmanager
def sole_owner(folder: Path, doing: str, patience: float = 5.0) -> Iterator[None]:
    """Hold the lock of a folder, which goes with the process.

    A killed process's workers may hold it for a second more, hence the patience (seconds). The
    lock is the folder's own and leaves nothing behind; a file system that locks no folders (NFS)
    gets a file `.lock`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        until = time.monotonic() + patience
        while (locked := _lock(handle)) is False and time.monotonic() < until:
            time.sleep(0.05)
        if locked is None:
            os.close(handle)
            flags = os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            handle = os.open(folder / ".lock", flags, 0o644)
            locked = _lock(handle)
    except OSError as error:
        raise GradsieveError(f"{folder}: cannot be used ({error.strerror or error})") from error
    try:
        if locked is False:
            raise GradsieveError(
                f"{folder}: another process is {doing} there; wait for it, or choose another folder"
            )
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Whether the lock could be taken; None where there is none to take."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def write_atomically(path: Path, content: bytes | str) -> None:
    """Replace `path` by `content`; a crash, a full disk or a kill leaves the old file as it was."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=leftover_prefix(path))
        with os.fdopen(handle, "wb") as file:
            _lock(handle)  # by which others know that it is no leftover
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


def leftover_prefix(path: Path) -> str:
    return f".{path.name}.partial-"


def remove_leftovers(path: Path) -> None:
    """Remove half-written files of killed processes beside `path`, which nobody has locked."""
    prefix = leftover_prefix(path)
    for name in os.listdir(path.parent) if path.parent.is_dir() else ():
        if not name.startswith(prefix):
            continue
        leftover = path.parent / name
        try:
            handle = os.open(leftover, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # gone, or not ours to look at
        try:
            if _lock(handle):
                _remove(leftover)
        finally:
            os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def parse_json(content: str | bytes) -> Any:
    """JSON, in which half a character (a lone surrogate, which no file can hold) becomes U+FFFD."""
    raw = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    value = json.loads(raw)
    return _whole_characters(value) if HALF_CHARACTER.search(raw) else value


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(part) for key, part in value.items()}
    return [_whole_characters(part) for part in value] if isinstance(value, list) else value


def parse_object(path: str | os.PathLike[str], text: str | bytes | None) -> dict[str, Any]:
    """The JSON object that was found in this file."""
    try:
        value = parse_json(text or "")
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path}: not readable as JSON ({error})") from error
    if not isinstance(value, dict):
        raise InvalidFile(f"{path}: not a JSON object")
    return value
