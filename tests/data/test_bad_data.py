"""What a person's file may have wrong with it: an error that names the place and the way out."""

from __future__ import annotations

import io
import os
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from small_files import contents, csv_text, npz_bytes, parquet_bytes, ts_text, written

from gradsieve.data import Columns, read, split
from gradsieve.errors import InvalidArgument, InvalidFile

HEADER = "series,time,x,target\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADER + "a,1,0.5,up\na,2,,up\n", r"line 3, column 'x': the value is missing; fill"),
        (HEADER + "a,1,0.5,up\na,2,NaN,up\n", r"line 3, column 'x': the value is missing"),
        (HEADER + "a,1,0.5,up\na,2,inf,up\n", r"line 3, column 'x': the value is infinite"),
        (HEADER + "a,1,0.5,up\na,2,much,up\n", r"line 3, column 'x': 'much' is not a number"),
        (HEADER + "a,1,1_000,up\n", r"line 2, column 'x': '1_000' is not a number"),
        (HEADER + "a,2,0.5,up\na,1,0.5,up\n", r"line 3: time 1 of series 'a' comes after 2; sort"),
        (HEADER + "a,1,0.5,up\na,1,0.5,up\n", r"line 3: time 1 of series 'a' is there twice"),
        (HEADER + "a,soon,0.5,up\n", r"line 2, column 'time': 'soon' is not a time"),
        (HEADER + "a,1,0.5,up\na,2024-01-01,0.5,up\n", r"line 3: .* different kinds"),
        (HEADER + "a,1,0.5\n", r"line 2: 3 fields where the header has 4"),
        (HEADER + ",1,0.5,up\n", r"line 2, column 'series': the series is missing"),
        (HEADER + "a,1,0.5,\na,2,0.5,\nb,1,0.1,up\n", r"line 2, .* series 'a' has no target"),
        (HEADER + "a,1,0.5,up\na,2,0.5,\na,3,0.1,down\n", r"line 3, .*'target': .* is missing"),
        (HEADER, "there are no rows"),
        ("series,time,x,y\na,1,2,3\n", r"no target column 'target' among .*'y'; say which"),
        (",series,target,x\n0,a,1,2\n", r"column 1 has no name.*index=False"),
        ("series,x,x,target\na,1,2,3\n", r"column 'x' is there twice"),
        ("series,target\na,1\n", "no feature column"),
        (HEADER + 'a,1,"0.5,up\n' * 3, r"line \d+: not CSV"),
    ],
)
def test_csv_errors_name_the_line_and_what_to_do(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        read(written(tmp_path, ".csv", text))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("@data", "@dato", "line 7: .* stands before @data"),
        ("@timeStamps false", "@timeStamps true", "line 3: values with time stamps"),
        (":left", ":up", r"line 7: class 'up' is not among .* left, right"),
        (":left", ":?", "line 7: the target is missing"),
        ("@classLabel true left right", "1,2,3:left", "line 5: .* stands before @data"),
    ],
)
def test_ts_errors_name_the_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        read(written(tmp_path, ".ts", ts_text().replace(old, new)))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("1,?,3:1,2,3:left", "dimension 1, step 2: the value is missing"),
        ("1,2,3:1,x,3:left", "dimension 2, step 2: the value is 'x', not a number"),
        ("1,2,3:1,nan,3:left", "dimension 2, step 2: the value is missing or infinite"),
        ("1,2,3:1,2:left", "dimension 2 has 2 steps where the first has 3"),
        ("1,2,3:left", "1 dimensions where the lines before have 2"),
        ("1,2,3", "no ':' before a target"),
    ],
)
def test_ts_data_errors_name_the_step(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=f"line 11.*{says}"):
        read(written(tmp_path, ".ts", ts_text() + line))


def npz_with(**arrays: object) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"u": np.zeros((2, 3, 1))}, "no array 't'"),
        ({"u": np.array([[0, np.nan], [1, 1]]), "t": [0, 1]}, "sequence 0, step 1, input 0"),
        ({"u": np.zeros((2, 3, 1)), "t": [0.5, np.nan]}, r"t is missing or infinite at \(1,\)"),
        ({"u": np.zeros((2, 3, 1)), "t": [0, 1, 2]}, r"t has shape \(3,\); for 2 sequences"),
        ({"u": np.zeros((5, 1)), "t": [0, 1], "lengths": [2, 2]}, "add up to 4, but u has 5"),
        ({"u": np.zeros((5, 1)), "t": [0, 1], "lengths": [0, 5]}, "lengths go from 0 to 5"),
        ({"u": np.zeros((5, 1)), "t": [0, 1], "lengths": [2.0, 3.0]}, "list of whole numbers"),
        ({"u": np.zeros((0, 1)), "t": [0]}, r"shape \(0, 1\)"),
        ({"u": np.zeros((2, 3), dtype=complex), "t": [0, 1]}, "must hold real numbers"),
        ({"u": np.array(["a", "b"]), "t": [0, 1]}, "must hold real numbers"),
        ({"u": np.array([[1], [1, 2]], dtype=object), "t": [0, 1]}, "Python objects.*concatenate"),
    ],
)
def test_npz_errors_name_the_array(tmp_path: Path, arrays: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidFile, match=says):
        read(written(tmp_path, ".npz", npz_with(**arrays)))


@pytest.mark.parametrize("ending", [".csv", ".ts", ".npz", ".parquet"])
def test_empty_and_absent_files_and_folders(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InvalidFile, match="the file is empty"):
        read(written(tmp_path, ending, b""))
    with pytest.raises(InvalidFile, match="no such file"):
        read(tmp_path / f"absent{ending}")
    (tmp_path / f"folder{ending}").mkdir()
    with pytest.raises(InvalidFile, match="a folder"):
        read(tmp_path / f"folder{ending}")


def test_a_pipe_is_refused_rather_than_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InvalidFile, match="a device"):
        read(tmp_path / "pipe.csv")


def test_an_unknown_ending_says_which_are_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"'\.xlsx'.*\.npz, \.csv"):
        read(tmp_path / "data.xlsx")


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_truncated_archives_are_refused(tmp_path: Path, ending: str, share: float) -> None:
    whole = contents()[ending]
    with pytest.raises(InvalidFile, match="not a readable"):
        read(written(tmp_path, ending, whole[: int(len(whole) * share)]))


@pytest.mark.parametrize("ending", [".csv", ".ts"])
def test_wrong_encodings_are_named_with_their_line(tmp_path: Path, ending: str) -> None:
    text = contents()[ending].decode().replace("left", "gauché")
    with pytest.raises(InvalidFile, match=r"0xe9 is not UTF-8; save .*first seen on line \d"):
        read(written(tmp_path, ending, text.encode("latin-1")))
    with pytest.raises(InvalidFile, match="UTF-16, not text"):
        read(written(tmp_path, ending, text.encode("utf-16")))
    with pytest.raises(InvalidFile, match="ZIP archive or a spreadsheet"):
        read(written(tmp_path, ending, npz_bytes()))


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    assert read(written(tmp_path, ".csv", csv_text().encode("utf-8-sig"))).count == 4


def claiming(shape: tuple[int, ...]) -> bytes:
    """An archive of under a kilobyte whose u claims this shape."""
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).ljust(117) + "\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("u.npy", member + bytes(64))
        archive.writestr("t.npy", npz_member(np.array([0, 1])))
    return buffer.getvalue()


def npz_member(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_a_ten_gigabyte_claim_costs_no_memory(tmp_path: Path) -> None:
    content = claiming((1250, 1_000_000, 1))
    assert len(content) < 1024
    path = written(tmp_path, ".npz", content)
    tracemalloc.start()
    with pytest.raises(InvalidFile, match=r"u claims shape .* holds 64 bytes"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_compressed_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("u.npy", npz_member(np.zeros((4, 1_000_000, 1))))
        archive.writestr("t.npy", npz_member(np.array([0, 1, 0, 1])))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    with pytest.raises(InvalidFile, match=r"claims to hold 32,000,\d+ bytes.*--max-values"):
        read(path, max_values=1_000_000)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_parquet_of_many_equal_rows_is_refused_by_its_claim(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = 2_000_000
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a"]))
    table = pa.table({"series": names, "x": np.zeros(rows), "target": names})
    path = tmp_path / "many.parquet"
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 100_000
    with pytest.raises(InvalidFile, match=r"claims 2,000,000 rows of 3 columns"):
        read(path, max_values=1_000_000)


@pytest.mark.parametrize("ending", [".csv", ".ts"])
def test_text_files_over_the_limit_are_refused(tmp_path: Path, ending: str) -> None:
    with pytest.raises(InvalidFile, match="more than 20 values"):
        read(written(tmp_path, ending, contents()[ending]), max_values=20)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("x", ["1", "2"], "column 'x': its type is string, not a number"),
        ("x", [1.0, None], "row 2, column 'x': the value is missing"),
        ("time", [2, 1], "row 2: time 1 of series 'a' comes after 2"),
        ("time", [1, None], "row 2, column 'time': the time is missing"),
        ("time", [[1], [2]], "column 'time': its type is list"),
        ("series", [[1], [2]], "column 'series': its type is list"),
        ("series", ["a", None], "row 2, column 'series': the series is missing"),
        ("target", ["b" * 2000, "c"], "row 1, column 'target': a text of 2000 characters"),
    ],
)
def test_parquet_errors_name_row_and_column(
    tmp_path: Path, column: str, values: list[object], says: str
) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {"series": ["a", "a"], "time": [1, 2], "x": [0.5, 0.6], "target": ["up", "up"]}
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({**columns, column: values}), path)
    with pytest.raises(InvalidFile, match=says):
        read(path)


def test_one_class_only_cannot_be_learned(tmp_path: Path) -> None:
    data = read(written(tmp_path, ".csv", HEADER + "a,1,0.5,up\nb,1,0.5,up\nc,1,0.5,up\n"))
    with pytest.raises(InvalidArgument, match="one class only, 'up'"):
        split(data)


def test_parquet_bytes_are_no_csv(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="this is Parquet"):
        read(written(tmp_path, ".csv", parquet_bytes()), columns=Columns())


def test_a_wide_header_takes_time_in_proportion(tmp_path: Path) -> None:
    names = ",".join(f"x{number}" for number in range(100_000))
    path = written(tmp_path, ".csv", f"series,target,{names}\na,1\n")
    began = time.perf_counter()
    with pytest.raises(InvalidFile, match="line 2: 2 fields where the header has 100002"):
        read(path)
    assert time.perf_counter() - began < 10


def test_one_long_label_for_many_rows_is_not_written_out_for_each(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    rows = 20_000
    codes = pa.array(np.zeros(rows, np.int32))
    names = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 1_000_000]))
    path = tmp_path / "long.parquet"
    table = pa.table({"series": names, "x": np.zeros(rows), "target": ["up"] * rows})
    pq.write_table(table, path)
    assert path.stat().st_size < 3_000_000
    with pytest.raises(InvalidFile, match="row 1, column 'series': a text of 1000000 characters"):
        read(path)
    assert pa.default_memory_pool().max_memory() < 500_000_000
