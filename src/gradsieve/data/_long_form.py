"""Tables in long form: one row a time step, with a series, a time, features and a target.

`LongForm` takes rows in chunks from a CSV or Parquet reader, checks each as it comes (so that an
error names the row) and builds the sequences. Rows of different series may be interleaved; within
a series time must increase strictly and by equal steps, or as `Preparation` allows.
Time orders rows and is not an input.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from gradsieve.data._columns import Columns
from gradsieve.data._preparation import Preparation
from gradsieve.data._sequences import Sequences
from gradsieve.data._spacing import (
    Grid,
    first_unequal,
    grid,
    interpolated,
    nearest_before,
    usual_interval,
)
from gradsieve.data._targets import (
    KindChoice,
    PerChoice,
    as_classes,
    as_numbers,
    looks_like_classes,
)
from gradsieve.errors import InvalidFile
from gradsieve.network import Array

CHUNK_VALUES = 1_000_000  # read at once
LONGEST_NAME = 1000  # characters of a series or class name: longer is a damaged file


def rows_at_once(columns: int) -> int:
    """So few that a wide table takes no more memory than a narrow one."""
    return max(1, min(16_384, CHUNK_VALUES // columns))


@dataclass(frozen=True)
class Rows:
    """One chunk of a table, column-wise."""

    label: str  # how a message counts rows: "line" or "row"
    numbers: Sequence[int]  # of the rows in the file, as a person counts them
    series: Sequence[str]
    times: Sequence[Any] | None  # int, float or datetime
    features: Array  # (rows, I)
    targets: Sequence[Sequence[str | None]]  # one sequence a target column; None is missing


class LongForm:
    """Sequences in the making."""

    def __init__(
        self,
        source: str,
        columns: Columns,
        max_values: int,
        preparation: Preparation = Preparation(),
    ) -> None:
        self.source, self.columns, self.max_values = source, columns, max_values
        self.preparation = preparation
        self.features = columns.features or ()
        self.codes: dict[str, int] = {}  # of series
        self.first_times: list[Any] = []
        self.last_times: list[Any] = []
        self.times = array("d")  # of each row, since the first one of its series
        self.owners = array("q")  # the series of each row
        self.row_numbers = array("q")
        self.blocks: list[Array] = []
        self.target_codes = [array("q") for _ in columns.targets]
        self.target_texts: list[dict[str, int]] = [{} for _ in columns.targets]
        self.label = "row"

    def add(self, rows: Rows) -> None:
        self.label = rows.label
        self._check_size(len(rows.numbers))
        self._check_finite(rows)
        for position, (number, name) in enumerate(zip(rows.numbers, rows.series, strict=True)):
            code = self._series_code(number, name)
            self.owners.append(code)
            if rows.times is not None:
                self._take_time(number, name, code, rows.times[position])
        self.row_numbers.extend(rows.numbers)
        self.blocks.append(rows.features)
        for column, texts, codes in zip(
            rows.targets, self.target_texts, self.target_codes, strict=True
        ):
            codes.extend(
                -1 if text is None else texts.setdefault(text, len(texts)) for text in column
            )

    def build(self, kind: KindChoice, per: PerChoice) -> Sequences:
        if not self.owners:
            raise InvalidFile(f"{self.source}: there are no rows; nothing can be learned from it")
        owners = np.frombuffer(self.owners, dtype=np.int64)
        order = np.argsort(owners, kind="stable")
        lengths = np.bincount(owners)
        self._ordered_rows = np.frombuffer(self.row_numbers, dtype=np.int64)[order]
        codes = [np.frombuffer(column, dtype=np.int64)[order] for column in self.target_codes]
        values, interval = np.concatenate(self.blocks)[order], self.preparation.interval
        if self.times:
            times = np.frombuffer(self.times, dtype=np.float64)[order]
            interval = interval or usual_interval(times, lengths)
            on = self._grid(times, lengths, interval)
            if on is not None:
                values, lengths = interpolated(values, on), on.lengths
                codes = [nearest_before(column, on) for column in codes]
                self._ordered_rows = self._ordered_rows[on.before]
        per_step = self._per_step(codes, lengths, per)
        if not per_step:
            codes = [
                self._one_each(column, lengths, name)
                for column, name in zip(codes, self.columns.targets, strict=True)
            ]
        targets, classes = self._targets(codes, kind)
        return Sequences(
            values=values,
            lengths=lengths,
            targets=targets,
            per_step=per_step,
            classes=classes,
            names=tuple(self.codes),
            features=self.features,
            preparation=Preparation(interval=interval),
        )

    def _grid(self, times: Array, lengths: Array, interval: float | None) -> Grid | None:
        """Where steps lie that are made equal; None where rows are taken as they are."""
        if interval is None or self.preparation.spacing == "ignore":
            return None
        row = first_unequal(times, lengths, interval)
        if row is None:
            return None
        if self.preparation.spacing == "refuse":
            raise InvalidFile(
                f"{self._at(row)}, column {self.columns.time!r}: {times[row] - times[row - 1]:g} "
                f"after the row before, where {interval:g} is usual; steps must be equally spaced. "
                "Choose spacing 'resample' to interpolate, or 'ignore' to take rows as steps"
            )
        most = self.max_values // (len(self.features) + 2)
        on = grid(times, lengths, interval, most)
        if on is None:
            raise InvalidFile(
                f"{self.source}: resampled every {interval:g} it has more than {self.max_values:,} "
                "values; allow more with --max-values, or choose spacing 'ignore'"
            )
        return on

    def _targets(
        self, codes: list[Array], kind: KindChoice
    ) -> tuple[Array, tuple[str, ...] | None]:
        names = self.columns.targets
        if kind == "auto":
            classes = len(names) == 1 and looks_like_classes(
                tuple(self.target_texts[0]), len(codes[0])
            )
            kind = "classification" if classes else "regression"
        if kind == "classification":
            if len(names) > 1:
                raise InvalidFile(
                    f"{self.source}: {len(names)} target columns; a classifier has one target"
                )
            return as_classes(codes[0], tuple(self.target_texts[0]))
        columns = [
            as_numbers(f"{self.source}, column {name!r}", column, tuple(texts))
            for name, column, texts in zip(names, codes, self.target_texts, strict=True)
        ]
        return np.stack(columns, axis=1), None

    def _per_step(self, codes: list[Array], lengths: Array, per: PerChoice) -> bool:
        """Targets change within a series, or they are one a series (perhaps on some rows only)."""
        if per == "auto":
            per = "series" if all(self._constant(column, lengths) for column in codes) else "step"
        if per == "series":
            return False
        for column, name in zip(codes, self.columns.targets, strict=True):
            missing = np.flatnonzero(column < 0)
            if missing.size:
                raise InvalidFile(
                    f"{self._at(missing[0])}, column {name!r}: the target is missing; give one on "
                    "every row, or the same one throughout each series"
                )
        return True

    def _constant(self, column: Array, lengths: Array) -> bool:
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        highest = np.maximum.reduceat(column, starts)
        lowest = np.minimum.reduceat(np.where(column < 0, np.iinfo(np.int64).max, column), starts)
        return bool(((highest == lowest) | (highest < 0)).all())

    def _one_each(self, column: Array, lengths: Array, name: str) -> Array:
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        highest = np.maximum.reduceat(column, starts)
        without = np.flatnonzero(highest < 0)
        differing = np.flatnonzero((column >= 0) & (column != np.repeat(highest, lengths)))
        if without.size and not (differing.size and differing[0] < starts[without[0]]):
            series = int(without[0])
            raise InvalidFile(
                f"{self._at(starts[series])}, column {name!r}: series {self._name(series)} has no "
                "target; give it one on at least one of its rows, or drop it"
            )
        if differing.size:
            series = int(np.searchsorted(starts, differing[0], side="right")) - 1
            raise InvalidFile(
                f"{self._at(differing[0])}, column {name!r}: series {self._name(series)} has more "
                "than one target; for a target at every row say --per step"
            )
        return highest

    def _series_code(self, number: int, name: str) -> int:
        code = self.codes.get(name)
        if code is None:
            if not name:
                raise InvalidFile(
                    f"{self.source}, {self.label} {number}, column {self.columns.series!r}: the "
                    "series is missing; say which series the row belongs to"
                )
            code = self.codes[name] = len(self.codes)
            self.first_times.append(None)
            self.last_times.append(None)
        return code

    def _take_time(self, number: int, name: str, code: int, time: Any) -> None:
        last = self.last_times[code]
        try:
            in_order = last is None or time > last
        except TypeError:
            raise InvalidFile(
                f"{self.source}, {self.label} {number}: time {time} and the one before it, {last}, "
                "are of different kinds; write all times alike"
            ) from None
        if not in_order:
            what = "is there twice" if time == last else f"comes after {last}"
            raise InvalidFile(
                f"{self.source}, {self.label} {number}: time {time} of series {name[:60]!r} "
                f"{what}; sort each series by time and keep one row a time"
            )
        self.last_times[code] = time
        if last is None:
            self.first_times[code] = time
        since = time - self.first_times[code]
        self.times.append(since.total_seconds() if isinstance(since, timedelta) else float(since))

    def _check_finite(self, rows: Rows) -> None:
        wrong = (
            np.isinf(rows.features)
            if self.preparation.missing != "refuse"
            else ~np.isfinite(rows.features)
        )
        if not wrong.any():
            return
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        value = rows.features[row, column]
        what = "missing" if np.isnan(value) else "infinite"
        raise InvalidFile(
            f"{self.source}, {rows.label} {rows.numbers[row]}, column {self.features[column]!r}: "
            f"the value is {what}; fill it in, drop the series, or choose missing 'mean' or 'last'"
        )

    def _check_size(self, more: int) -> None:
        columns = len(self.features) + 2 * len(self.columns.targets) + 2
        if (len(self.owners) + more) * columns > self.max_values:
            raise InvalidFile(
                f"{self.source}: more than {self.max_values:,} values; split the file, or allow "
                "more with --max-values"
            )

    def _at(self, position: int) -> str:
        return f"{self.source}, {self.label} {self._ordered_rows[position]}"

    def _name(self, series: int) -> str:
        return repr(list(self.codes)[series][:60])
