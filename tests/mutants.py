"""Damaged copies of a good file, the same ones every time, and what must hold for each of them.

`GRADSIEVE_FUZZ=50 pytest -k mutants` (`make fuzz`) takes fifty times as many.
"""

from __future__ import annotations

import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradsieve as gs

TIMES = float(os.environ.get("GRADSIEVE_FUZZ", "1"))
SECONDS = 10  # for one mutant, on a machine that does other things too
LONGEST_MESSAGE = 2000


def mutants(content: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """So many copies of a file with some bytes changed, lost, put in, swapped or said twice."""
    for number in range(round(count * TIMES)):
        changed = mutant(content, random.Random(f"{seed} {number}"))
        if changed != content:
            yield changed


def mutant(content: bytes, chance: random.Random) -> bytes:
    result = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        if not result:
            break
        place = chance.randrange(len(result))
        size = chance.choice((1, 1, 2, 4, 8, 64))
        match chance.randrange(9):
            case 0:
                result[place] ^= 1 << chance.randrange(8)
            case 1:
                result[place] = chance.choice((0, 0x7F, 0x80, 0xFF, *b'"{[(,:\n0-9eN\\'))
            case 2:
                del result[place : place + size]
            case 3:
                result[place:place] = chance.randbytes(size)
            case 4:
                del result[place:]
            case 5:
                result[place:place] = result[place : place + 40] * 3
            case 6:
                result[place : place + size] = bytes(len(result[place : place + size]))
            case 7:
                other = chance.randrange(len(result))
                result[place], result[other] = result[other], result[place]
            case 8:  # another number, where there are digits
                text = result[place : place + 16]
                digits = [at for at, byte in enumerate(text) if 48 <= byte < 58]
                if digits:
                    result[place + chance.choice(digits)] = chance.choice(b"0123456789-.e")
    return bytes(result)


def put(path: Path, content: bytes) -> None:
    """Write a file anew; to overwrite one is slow on some file systems."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def right_or_refused(action: Callable[[], Any], right: Callable[[Any], bool]) -> bool:
    """Do it; it gives what is right, or one `GradsieveError` in one printable line, soon.

    Whether it gave something. Warnings are errors: nothing is said on the side.
    """
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = action()
    except gs.GradsieveError as error:
        said = str(error)
        assert said, "an error without words"
        assert said.isprintable(), f"not one printable line: {said!r}"
        assert len(said) < LONGEST_MESSAGE, f"{len(said)} characters: {said[:200]!r}"
        return False
    finally:
        took = time.perf_counter() - began
        assert took < SECONDS, f"{took:.1f} s"
    assert right(found), f"another result, and nothing was said: {found!r}"
    return True
