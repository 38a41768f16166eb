"""Each format gives the same sequences, and targets are understood."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_files import CLASSES, LENGTHS, contents, csv_text, sequences, written

from gradsieve.data import Columns, read

AEON = "aeon.datasets"


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".ts", ".npz", ".parquet"])
def test_every_format_holds_the_same_sequences(tmp_path: Path, ending: str) -> None:
    data = read(written(tmp_path, ending, contents()[ending]))
    np.testing.assert_array_equal(data.values, np.concatenate(sequences()))
    assert data.lengths.tolist() == list(LENGTHS)
    assert data.classes == ("left", "right")
    assert [data.classes[code] for code in data.targets] == list(CLASSES)
    assert not data.per_step


def test_interleaved_series_give_the_same_as_grouped_ones(tmp_path: Path) -> None:
    header, *rows = csv_text().splitlines()
    by_time = sorted(rows, key=lambda row: int(row.split(",")[1]))
    grouped = read(written(tmp_path, ".csv", csv_text()))
    mixed = read(written(tmp_path, ".csv", "\n".join([header, *by_time])))
    np.testing.assert_array_equal(mixed.values, grouped.values)
    np.testing.assert_array_equal(mixed.targets, grouped.targets)


def test_a_target_that_changes_within_a_series_is_one_a_step(tmp_path: Path) -> None:
    text = "series,time,x,target\na,1,0.5,up\na,2,0.1,down\nb,1,0.3,up\n"
    data = read(written(tmp_path, ".csv", text))
    assert data.per_step
    assert data.targets.tolist() == [1, 0, 1]


def test_a_target_on_one_row_of_a_series_is_that_of_the_series(tmp_path: Path) -> None:
    text = "series,time,x,target\na,1,0.5,\na,2,0.1,up\nb,1,0.3,down\n"
    data = read(written(tmp_path, ".csv", text))
    assert not data.per_step
    assert data.targets.tolist() == [1, 0]


def test_several_numeric_targets_are_a_regression(tmp_path: Path) -> None:
    text = "series;x;p;q\na;1;0.5;2\na;2;0.5;2\nb;3;1.5;4\n"
    columns = Columns(targets=("p", "q"))
    data = read(written(tmp_path, ".csv", text), columns=columns)
    assert data.classes is None
    assert data.targets.tolist() == [[0.5, 2], [1.5, 4]]


def test_whole_numbers_seen_often_are_classes_and_can_be_said_to_be_quantities(
    tmp_path: Path,
) -> None:
    rows = [f"s{n},{n},{n % 3}" for n in range(12)]
    path = written(tmp_path, ".csv", "\n".join(["series,x,target", *rows]))
    assert read(path).classes == ("0", "1", "2")
    assert read(path, kind="regression").targets[:4, 0].tolist() == [0, 1, 2, 0]


def test_class_names_that_are_numbers_are_in_numerical_order(tmp_path: Path) -> None:
    rows = [f"s{n},{n},{9 + n % 3}" for n in range(12)]
    data = read(written(tmp_path, ".csv", "\n".join(["series,x,target", *rows])))
    assert data.classes == ("9", "10", "11")


@pytest.mark.parametrize("lengths", [False, True])
def test_npz_per_step_targets_of_padded_and_of_full_arrays(tmp_path: Path, lengths: bool) -> None:
    u = np.arange(2 * 3 * 1, dtype=float).reshape(2, 3, 1)
    t = np.array([[0, 1, 0], [1, 0, 1]])
    path = tmp_path / "data.npz"
    if lengths:
        np.savez(path, u=u, t=t, lengths=[2, 3])
    else:
        np.savez(path, u=u, t=t)
    data = read(path)
    assert data.per_step
    assert data.targets.tolist() == ([0, 1, 1, 0, 1] if lengths else [0, 1, 0, 1, 0, 1])


def test_npz_float_targets_are_a_regression_with_several_outputs(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, u=np.zeros((3, 5)), t=np.arange(6.0).reshape(3, 2))
    data = read(path)
    assert (data.inputs, data.outputs, data.output, data.per_step) == (1, 2, "linear", False)


def test_real_ts_files_agree_with_aeon() -> None:
    datasets = pytest.importorskip(AEON)
    folder = Path(datasets.__file__).parent / "data"
    for name in ("JapaneseVowels", "BasicMotions", "GunPoint", "ItalyPowerDemand"):
        path = folder / name / f"{name}_TRAIN.ts"
        data = read(path)
        expected, labels = datasets.load_from_ts_file(str(path))
        assert data.count == len(expected)
        for case in (0, data.count // 2, data.count - 1):
            rows = data.steps_of([case])
            np.testing.assert_allclose(data.values[rows].T, expected[case], rtol=1e-12)
            assert data.classes is not None
            assert data.classes[data.targets[case]].lower() == labels[case]  # aeon lowers them


def test_parquet_times_may_be_timestamps_and_labels_numbers(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "id": pa.array([1, 1, 2, 2], pa.int64()),
            "when": pa.array([0, 1, 0, 1], pa.timestamp("ns")),
            "x": pa.array([1, 2, 3, 4], pa.int32()),
            "flag": pa.array([True, False, True, True]),
            "y": pa.array([0.25, 0.25, 0.75, 0.75], pa.float32()),
        }
    )
    path = tmp_path / "data.parquet"
    pq.write_table(table, path)
    data = read(path, columns=Columns(series="id", time="when", targets=("y",)))
    assert data.features == ("x", "flag")
    assert data.values.tolist() == [[1, 1], [2, 0], [3, 1], [4, 1]]
    assert data.targets.tolist() == [[0.25], [0.75]]
