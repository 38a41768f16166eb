"""Measurements, kept in one JSON file and shown as a page of tables in Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gradsieve.bench.accuracy import Attempt
from gradsieve.bench.matrix import GROWTH, Row
from gradsieve.errors import InvalidFile
from gradsieve.files import write_atomically
from gradsieve.text import table
from gradsieve.training.record import versions

# A heading, whose step is faster, and than whose.
SPEED = (
    ("JAX", "JAX plain", "PyTorch plain"),
    ("core", "core plain", "PyTorch plain"),
    ("core, corrected", "core corrected", "PyTorch plain"),
    ("gst", "gst plain", "PyTorch plain"),
    ("gst, corrected", "gst corrected", "PyTorch plain"),
)
SIEVE = (
    ("core, judged", "core plain", "core judged"),
    ("core, corrected", "core plain", "core corrected"),
    ("core, full dS", "core plain", "core predicted"),
    ("gst, judged", "gst plain", "gst judged"),
    ("gst, corrected", "gst plain", "gst corrected"),
    ("PyTorch, judged", "PyTorch plain", "PyTorch judged"),
    ("PyTorch, corrected", "PyTorch plain", "PyTorch corrected"),
)
CORES = (
    ("core", "core plain", "core plain, one core"),
    ("gst", "gst plain", "gst plain, one core"),
    ("PyTorch", "PyTorch plain", "PyTorch plain, one core"),
)


@dataclass(frozen=True)
class Findings:
    """All that `gradsieve bench` has found; each part is from one run of the command."""

    rows: list[Row] = field(default_factory=list)  # the matrix
    growth: list[Row] = field(default_factory=list)
    outcomes: list[Attempt] = field(default_factory=list)  # the time to accuracy

    def as_json(self) -> str:
        parts: dict[str, Sequence[Any]] = vars(self)
        stored = {"versions": versions()} | {
            name: [one.as_dict() for one in found] for name, found in parts.items()
        }
        lines = (f' "{name}": {_lines(value)}' for name, value in stored.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def read(cls, path: Path) -> Findings:
        """The findings in the file, or none where there is no file."""
        if not path.exists():
            return cls()
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            rows, growth = ([Row.from_dict(row) for row in stored[k]] for k in ("rows", "growth"))
            return cls(rows, growth, [Attempt(**one) for one in stored["outcomes"]])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidFile(f"{path}: holds no measurement of gradsieve bench") from error

    def write(self, path: Path) -> None:
        """The numbers as JSON; beside them the page and, with matplotlib, the picture."""
        from gradsieve.bench.picture import draw

        write_atomically(path, self.as_json())
        write_atomically(path.with_suffix(".md"), page(self))
        draw(self, path.with_suffix(".png"))


def _lines(value: Any) -> str:
    """JSON with one line for each element of a list."""
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(json.dumps(one) for one in value) + "]"


def page(found: Findings) -> str:
    """All tables, those that have rows."""
    parts = ["# What training costs", "Made by `gradsieve bench`. Compare within a row."]
    for cores in sorted({row.cores for row in found.rows}):
        rows = [row for row in found.rows if row.cores == cores]
        where = "one core" if cores == 1 else f"{cores} cores"
        parts += [f"## A training step, {where}", _speed(rows)]
        if cores == 1:
            parts += ["## The sieve, in plain steps of the same network", _ratios(rows, SIEVE)]
        else:
            parts += ["## All cores against one", _ratios(rows, CORES)]
    if found.growth:
        parts += ["## Growth", *(_growth(found.growth, varied) for varied in GROWTH)]
    if found.outcomes:
        parts += ["## Seconds until 99 % of the validation sequences are right", _outcomes(found)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _ratio(row: Row, fast: str, than: str) -> str:
    found = row.times(fast, than)
    return "–" if found is None else f"{found:.2f}"


def _share(row: Row) -> str:
    share = row.share()
    return "–" if share is None else f"{share:.0%}"


def _speed(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        own = row.timings.get("PyTorch plain")
        milliseconds = "–" if own is None else f"{own.median * 1e3:.2f} ms"
        times = [_ratio(row, fast, than) for _, fast, than in SPEED]
        lines.append([row.size.name, milliseconds, *times, _share(row)])
    return (
        "Times as fast as PyTorch's plain step, which stands first. The share is that of one "
        "core's measured peak, forward and backward alone.\n\n"
        + table(["size", "PyTorch", *(heading for heading, *_ in SPEED), "share of peak"], lines)
    )


def _ratios(rows: list[Row], columns: Sequence[tuple[str, str, str]]) -> str:
    lines = [
        [row.size.name, *(_ratio(row, fast, than) for _, fast, than in columns)] for row in rows
    ]
    return table(["size", *(heading for heading, *_ in columns)], lines)


def _growth(rows: list[Row], varied: str) -> str:
    """Milliseconds of a plain step, and the ratio of a corrected one, as one size grows."""
    of_size: Callable[[Row], int] = lambda row: getattr(row.size, varied)  # noqa: E731
    middle = {"length": 100, "hidden": 100, "batch": 10}
    others = [name for name in middle if name != varied]
    found: dict[
        tuple[str, int], Row
    ] = {}  # each size grows from the middle one: it is there thrice
    for row in rows:
        if all(getattr(row.size, name) == middle[name] for name in others):
            found.setdefault((row.size.cell, of_size(row)), row)
    cells = list(dict.fromkeys(cell for cell, _ in found))
    lines = [
        [cell, str(size), *_growth_cells(found[cell, size])]
        for cell, size in sorted(found, key=lambda one: (cells.index(one[0]), one[1]))
    ]
    return table(["cell", varied, "plain", "corrected / plain", "share of peak"], lines)


def _growth_cells(row: Row) -> list[str]:
    owner = "core" if "core plain" in row.timings else "gst"
    plain = row.timings[f"{owner} plain"].median
    corrected = _ratio(row, f"{owner} plain", f"{owner} corrected")
    return [f"{plain * 1e3:.3f} ms", corrected, _share(row)]


def _outcomes(found: Findings) -> str:
    groups: dict[tuple[str, int, str], list[Attempt]] = {}
    for one in found.outcomes:
        groups.setdefault((one.task, one.length, one.way), []).append(one)
    lines = []
    for (task, length, way), runs in groups.items():
        solved = [run.seconds for run in runs if run.seconds is not None]
        lines.append(
            [
                f"{task}, T={length}",
                way,
                f"{statistics.median(solved):.1f} s" if solved else "–",
                f"{len(solved)} of {len(runs)}",
                f"{statistics.median(run.spent for run in runs):.1f} s",
                f"{statistics.median(run.accuracy for run in runs):.0%}",
            ]
        )
    headings = ("task", "trained by", "median, solved", "solved", "median, all", "best accuracy")
    return table(headings, lines)
