"""Missing inputs, unequal spacing and unequal lengths are refused, or treated as was chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradsieve.data import Preparation, Scaling, Sequences, filled, from_arrays, read
from gradsieve.errors import InvalidArgument, InvalidFile

ROWS = """series,time,x,y,target
a,0,1,10,up
a,1,,20,up
a,2,3,,up
a,4,5,40,up
b,0,2,,down
b,1,4,30,down
"""


def table(tmp_path: Path, text: str = ROWS) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def test_all_is_refused_by_default_by_row_and_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"line 3, column 'x'.*missing.*'mean' or 'last'"):
        read(table(tmp_path))
    with pytest.raises(InvalidFile, match=r"line 5, column 'time': 2 after .* where 1 is usual.*"
                       "'resample' to interpolate, or 'ignore'"):  # fmt: skip
        read(table(tmp_path), preparation=Preparation(missing="mean"))
    keep = Preparation(missing="mean", spacing="ignore", lengths="refuse")
    with pytest.raises(InvalidFile, match="series have 2 to 4 steps"):
        read(table(tmp_path), preparation=keep)


def test_missing_inputs_are_their_mean_or_their_last_value(tmp_path: Path) -> None:
    data = read(table(tmp_path), preparation=Preparation(missing="last", spacing="ignore"))
    mean = Scaling.of(data).mean
    np.testing.assert_allclose(mean, [3, 25])  # NaN does not count
    last = filled(data, "last", mean).values
    assert last.tolist() == [[1, 10], [1, 20], [3, 20], [5, 40], [2, 25], [4, 30]]
    means = filled(data, "mean", mean).values
    assert means.tolist() == [[1, 10], [3, 20], [3, 25], [5, 40], [2, 25], [4, 30]]
    with pytest.raises(InvalidArgument, match=r"'x' is missing at step 2 of series 'a'"):
        filled(data, "refuse", mean)


def test_unequal_times_are_interpolated_at_the_usual_interval(tmp_path: Path) -> None:
    text = ROWS.replace(",,", ",2,").replace("3,,", "3,30,")
    text = text.replace("2,2,down", "2,20,down")
    data = read(table(tmp_path, text), preparation=Preparation(spacing="resample"))
    assert data.lengths.tolist() == [5, 2]
    assert data.values[:5, 0].tolist() == [1, 2, 3, 4, 5]
    assert data.preparation.interval == 1
    finer = read(table(tmp_path, text), preparation=Preparation(spacing="resample", interval=0.5))
    assert finer.lengths.tolist() == [9, 3]
    np.testing.assert_allclose(finer.values[:9, 0], np.arange(1, 5.1, 0.5))


def test_targets_of_steps_are_those_of_the_row_before(tmp_path: Path) -> None:
    text = "series,time,x,target\n" + "".join(
        f"a,{time},{time},{target}\n" for time, target in ((0, "p"), (1, "q"), (2, "q"), (5, "p"))
    )
    data = read(table(tmp_path, text), per="step", preparation=Preparation(spacing="resample"))
    assert [data.classes[code] for code in data.targets] == list("pqqqqp")  # type: ignore[index]


def test_dates_count_in_seconds_and_jitter_is_no_inequality(tmp_path: Path) -> None:
    seconds = ("00.000", "10.400", "20.000", "30.400")
    text = "series,time,x,target\n" + "".join(
        f"{series},2024-05-01T12:00:{second},1.5,{series}\n"
        for series in "ab"
        for second in seconds
    )
    data = read(table(tmp_path, text))
    assert data.lengths.tolist() == [4, 4]
    assert data.preparation.interval == pytest.approx(10, abs=1)


@given(
    gaps=st.lists(st.floats(0.05, 3.0), min_size=1, max_size=30),
    interval=st.floats(0.1, 2.0),
)
def test_interpolation_is_numpys_and_never_leaves_the_series(
    gaps: list[float], interval: float
) -> None:
    from gradsieve.data._spacing import grid, interpolated

    times = np.concatenate([[0.0], np.cumsum(gaps)])
    values = np.random.default_rng(0).standard_normal((2 * len(times), 2))
    both = np.concatenate([times, times])
    lengths = np.array([len(times), len(times)])
    on = grid(both, lengths, interval, 10**6)
    assert on is not None
    steps = int(on.lengths[0])
    wanted = np.minimum(interval * np.arange(steps), times[-1])
    found = interpolated(values, on)
    for part, rows in (
        (found[:steps], values[: len(times)]),
        (found[steps:], values[len(times) :]),
    ):
        for column in range(2):
            expected = np.interp(wanted, times, rows[:, column])
            np.testing.assert_allclose(part[:, column], expected, atol=1e-9)


def test_a_tiny_interval_does_not_fill_memory(tmp_path: Path) -> None:
    text = "series,time,x,target\na,0,1,1\na,1e-9,1,1\na,2e-9,1,1\na,1e9,1,1\nb,0,1,2\n"
    with pytest.raises(InvalidFile, match="more than 100,000,000 values"):
        read(table(tmp_path, text), preparation=Preparation(spacing="resample"))


@pytest.mark.parametrize("ending", [".npz", ".ts"])
def test_only_tables_have_gaps(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"data{ending}"
    path.write_text("x")
    with pytest.raises(InvalidFile, match="missing is 'last', which is for tables"):
        read(path, preparation=Preparation(missing="last"))


@pytest.mark.parametrize("wrong", [{"missing": "zero"}, {"spacing": "on"}, {"interval": 0}])
def test_an_unknown_choice_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=f"{next(iter(wrong))} is"):
        Preparation(**wrong)


def test_a_subset_and_arrays_keep_what_was_chosen() -> None:
    data = from_arrays([[[1.0], [np.nan]], [[2.0], [3.0]]], [0, 1], ("a", "b"))
    chosen = Sequences(data.values, data.lengths, data.targets, False, data.classes,
                       preparation=Preparation(missing="last", interval=0.5))  # fmt: skip
    assert chosen.subset([1]).preparation == Preparation(missing="last", interval=0.5)
