"""Writing: whole or not at all, whatever happens. Reading: an `InvalidFile`, whatever it holds."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.files import parse_object, remove_leftovers, write_atomically
from gradsieve.tensors import read_tensors, tensor_bytes

WRITES_FOR_EVER = """
import sys
from pathlib import Path
from gradsieve.files import write_atomically
for turn in range(1_000_000):
    write_atomically(Path(sys.argv[1]), bytes([turn % 256]) * 300_000)
    if turn == 0:
        print("written once", flush=True)
"""

WRITES_WITH_A_LIMIT = """
import resource, sys
from pathlib import Path
import gradsieve as gs
from gradsieve.files import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_atomically(Path(sys.argv[1]), b"new" * 1000)
except gs.GradsieveError as error:
    print(error)
"""


def test_a_write_replaces_the_whole_file_and_makes_its_folder(tmp_path):
    path = tmp_path / "a" / "b" / "file.json"
    write_atomically(path, "long old content")
    write_atomically(path, "δ")
    assert path.read_text(encoding="utf-8") == "δ"
    assert os.listdir(path.parent) == ["file.json"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    command = [sys.executable, "-c", WRITES_WITH_A_LIMIT, str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "cannot be written" in said
    assert str(path) in said
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "under", tmp_path / ("x" * 300), tmp_path):
        with pytest.raises(gs.GradsieveError, match="cannot be written"):
            write_atomically(path, b"")
    assert os.listdir(tmp_path) == ["file"]


def test_a_kill_leaves_one_whole_file_and_its_leftovers_can_be_removed(tmp_path):
    path, beside = tmp_path / "file", tmp_path / ".file.mine"
    beside.write_bytes(b"mine")
    moments = random.Random(1)
    for _ in range(8):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITES_FOR_EVER, str(path)], stdout=subprocess.PIPE
        )
        writer.stdout.readline()
        time.sleep(moments.uniform(0.01, 0.1))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        content = path.read_bytes()
        assert len(content) == 300_000
        assert content == content[:1] * 300_000
    remove_leftovers(path)
    assert sorted(os.listdir(tmp_path)) == [".file.mine", "file"]


@given(content=st.binary(max_size=50) | st.text(max_size=50).map(str.encode))
def test_whatever_is_not_a_json_object_is_refused(content):
    try:
        value = parse_object("file", content)
    except gs.InvalidFile:
        return
    assert isinstance(value, dict)


@pytest.mark.parametrize("text", [None, "", "[]", "1", "9" * 5000, "[" * 100_000, b"\xff{}"])
def test_json_that_is_no_object_or_too_deep_or_too_large_is_refused(text):
    with pytest.raises(gs.InvalidFile, match=r"^file: "):
        parse_object("file", text)


@given(
    metadata=st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=5),
    sizes=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(1, 9), min_size=1),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_arrays_and_metadata_come_back_and_make_the_same_bytes(
    tmp_path_factory, metadata, sizes, dtype
):
    path = tmp_path_factory.mktemp("tensors") / "file"
    metadata["format"] = "mine"
    arrays = {name: np.arange(size, dtype=dtype) for name, size in sizes.items()}
    content = tensor_bytes(arrays, metadata)
    assert content == tensor_bytes(arrays, dict(reversed(metadata.items())))
    path.write_bytes(content)
    read, told = read_tensors(path, arrays, "mine", "file")
    assert told == metadata
    for name, array in arrays.items():
        assert read[name].tobytes() == array.tobytes()
        assert read[name].dtype == array.dtype
