"""Whatever the bytes, a reader gives sequences or says what is wrong, soon and in little memory."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_files import contents, written

from gradsieve.data import Sequences, read
from gradsieve.errors import InvalidFile

CONTENTS = contents()
MAX_VALUES = 100_000
FUZZ = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def taken(path: Path) -> None:
    """Read, and hold what the reader promises."""
    began = time.perf_counter()
    said = str(path)
    tracemalloc.start()
    try:
        data = read(path, max_values=MAX_VALUES)
        assert isinstance(data, Sequences)
        assert np.isfinite(data.values).all()
        assert data.padded(np.arange(min(4, data.count))).u.shape[2] == data.inputs
    except InvalidFile as error:
        said = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert said.startswith(str(path))
    assert len(said) < 2000
    assert peak < 64_000_000
    assert time.perf_counter() - began < 10


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A valid file with some bytes changed, lost or put in."""
    result = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        if not result:
            break
        position = draw(st.integers(0, len(result) - 1))
        match draw(st.sampled_from(["change", "cut", "insert", "end", "repeat"])):
            case "change":
                result[position] = draw(st.integers(0, 255))
            case "cut":
                del result[position : position + draw(st.integers(1, 64))]
            case "insert":
                result[position:position] = draw(st.binary(min_size=1, max_size=16))
            case "end":
                del result[position:]
            case "repeat":
                result[position:position] = result[position : position + 40] * 3
    return bytes(result)


@pytest.mark.parametrize("ending", sorted(CONTENTS))
@FUZZ
@given(pick=st.data())
def test_damaged_files(tmp_path: Path, ending: str, pick: st.DataObject) -> None:
    taken(written(tmp_path, ending, pick.draw(damaged(CONTENTS[ending]))))


@pytest.mark.parametrize("ending", sorted(CONTENTS))
@FUZZ
@given(content=st.binary(max_size=400))
def test_bytes_at_random(tmp_path: Path, ending: str, content: bytes) -> None:
    taken(written(tmp_path, ending, content))


@pytest.mark.parametrize("ending", [".csv", ".ts"])
@FUZZ
@given(pick=st.data())
def test_words_of_the_format_in_any_order(tmp_path: Path, ending: str, pick: st.DataObject) -> None:
    words = [
        "series",
        "time",
        "target",
        "x",
        ",",
        ",",
        "\n",
        "\n",
        '"',
        "a",
        "b",
        "1",
        "2",
        "0.5",
        "nan",
        "",
        "?",
        ":",
        "@data\n",
        "@classLabel true a b\n",
        "@targetLabel true\n",
        "@",
        "é",
        "\x00",
        "\r",
        "1e400",
        "-",
        ";",
        "2024-01-01",
        "9" * 400,
    ]
    text = "".join(pick.draw(st.lists(st.sampled_from(words), max_size=60)))
    prefix = "series,time,x,target\n" if ending == ".csv" else "@data\n"
    taken(written(tmp_path, ending, prefix + text))
    taken(written(tmp_path, ending, text))


@FUZZ
@given(pick=st.data())
def test_npz_arrays_of_any_shape_and_kind(tmp_path: Path, pick: st.DataObject) -> None:
    shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)
    kinds = st.sampled_from(["f8", "f4", "i8", "u1", "?", "U3", "S3", "c8", "M8[s]", "V4", "f2"])
    arrays = {
        name: np.zeros(pick.draw(shapes), dtype=pick.draw(kinds))
        for name in pick.draw(st.sets(st.sampled_from(["u", "t", "lengths", "features", "v"])))
    }
    path = tmp_path / "data.npz"
    np.savez(path, **arrays)
    taken(path)
