"""Thousands of damaged data files: sequences of finite numbers, or one line that says why not."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from small_files import contents

from gradsieve.data import Sequences, read
from mutants import mutants, put, right_or_refused

CONTENTS = contents()
COUNTS = {".csv": 3000, ".tsv": 1000, ".ts": 3000, ".npz": 3000, ".parquet": 1500}
MEMORY = 400_000  # KiB that this process may grow by


def whole(data: Sequences) -> bool:
    known = data.classes is None or bool((data.targets < len(data.classes)).all())
    return (
        known
        and bool(np.isfinite(data.values).all())
        and len(data.values) == int(data.lengths.sum())
        and all(isinstance(name, str) for name in (*data.features, *data.names))
    )


@pytest.mark.parametrize("ending", sorted(CONTENTS))
def test_mutants_of_a_data_file(tmp_path, capfd, ending) -> None:
    path = tmp_path / f"data{ending}"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for content in mutants(CONTENTS[ending], COUNTS[ending]):
        put(path, content)
        right_or_refused(lambda: read(path, max_values=100_000), whole)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY
    assert capfd.readouterr() == ("", "")


HEADERS = [
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (22, 2",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': ((((22, 2), }",
    b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (22, 2), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (22, 2), }",
    b"{'descr': '<U999999999', 'fortran_order': False, 'shape': (22, 2), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (-22, 2), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999, 2), }",
    b"{'descr': '\\d', 'fortran_order': False, 'shape': (22, 2), }",
    b"[" * 60_000,
    b"__import__('os').abort()",
    b"",
]


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
@pytest.mark.parametrize("version", [1, 2, 3])
def test_mutants_of_an_array_header(tmp_path, capfd, header, version) -> None:
    import zipfile

    size = len(header).to_bytes(2 if version == 1 else 4, "little")
    array = b"\x93NUMPY" + bytes([version, 0]) + size + header + bytes(22 * 2 * 8)
    for name in ("u", "t", "lengths", "features"):
        path = tmp_path / f"{name}.npz"
        np.savez(path, **{other: np.zeros(2) for other in ("u", "t") if other != name})
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(f"{name}.npy", array)
        assert not right_or_refused(lambda path=path: read(path), whole)
    assert capfd.readouterr() == ("", "")


def test_text_of_bytes_that_are_no_characters_is_refused(tmp_path) -> None:
    for dtype in ("<U1", ">U2"):
        for bad in (0x110000, 0xD800, 0xFFFFFFFF):
            codes = np.full(4 * np.dtype(dtype).itemsize // 4, bad, dtype=f"{dtype[0]}u4")
            np.savez(tmp_path / "data.npz", u=np.zeros((4, 3, 1)), t=codes.view(dtype))
            assert not right_or_refused(lambda: read(tmp_path / "data.npz"), whole)


def test_columns_and_series_cost_in_proportion_to_their_number(tmp_path) -> None:
    """Ten times as many may take some fifteen times as long, not a hundred."""
    import time

    def seconds(columns: int) -> float:
        path = tmp_path / "wide.csv"
        names, values = (
            ",".join(f"{kind}{number}" for number in range(columns)) for kind in ("c", "1")
        )
        path.write_text(f"series,target,{names}\n" + f"a,x,{values}\n" + f"b,y,{values}\n")
        began = time.perf_counter()
        assert read(path, kind="classification").inputs == columns
        return time.perf_counter() - began

    small = min(seconds(10_000) for _ in range(3))
    assert seconds(100_000) < 40 * small
