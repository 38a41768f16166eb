"""Reading run folders: what was trained, how each epoch went, how it ended.

A folder may come from a run that still goes on, was killed, or was damaged, so reading never
trusts it: a line of the history that does not parse is counted and left out, a number that is not
a finite number is None. Only a folder that holds no run at all is an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsieve.errors import InvalidFile
from gradsieve.experiments.config import label_of

FORMAT = "gradsieve-run-1"
SETTINGS_FILE = "run.json"
HISTORY_FILE = "history.jsonl"
RESULT_FILE = "result.json"


@dataclass(frozen=True)
class Run:
    """One network's training, as its folder tells it."""

    folder: Path
    settings: Mapping[str, Any]
    epochs: tuple[Mapping[str, Any], ...]  # by epoch number, each once
    result: Mapping[str, Any] | None  # None while it is not finished
    damaged_lines: int

    @property
    def task(self) -> str:
        return str(self.settings.get("task", "unknown task"))

    @property
    def label(self) -> str:
        """What its way of training is called, by whoever trained it or else by its settings."""
        named = self.settings.get("label")
        return str(named) if named is not None else label_by_settings(self.settings)

    @property
    def network(self) -> str:
        """Which initial network it started from; runs of the same one are compared in pairs."""
        return str(self.settings.get("network", self.settings.get("seed", 0)))

    @property
    def sieved(self) -> bool:
        return self.settings.get("sieve") is not None

    @property
    def q_range(self) -> tuple[float, float] | None:
        """The sieve's safe range of Q, where there is a sieve."""
        sieve = self.settings.get("sieve")
        bounds = sieve.get("q_range") if isinstance(sieve, Mapping) else None
        if not isinstance(bounds, Sequence) or len(bounds) != 2:
            return None
        low, high = finite(bounds[0]), finite(bounds[1])
        return None if low is None or high is None else (low, high)

    @property
    def stages(self) -> list[tuple[float, float]]:
        """Lengths of the short sequences that came first, each with its epochs."""
        stages = self.settings.get("stages")
        known = []
        for stage in stages if isinstance(stages, list) else []:
            numbers = [finite(one) for one in stage] if isinstance(stage, list) else []
            if len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
                known.append((numbers[0], numbers[1]))
        return known

    @property
    def chance(self) -> float | None:
        """What a constant guess scores."""
        return finite(self.settings.get("chance"))

    @property
    def accuracy(self) -> float | None:
        """Test accuracy; of a run that is not finished, the best validation accuracy so far."""
        if self.result is not None:
            tested = finite(self.result.get("test_accuracy"))
            if tested is not None:
                return tested
        return max((value for value in self.column("accuracy") if value is not None), default=None)

    def last(self, name: str) -> float | None:
        """The latest known value of a number, such as a count that goes on from the beginning."""
        return next((value for value in reversed(self.column(name)) if value is not None), None)

    def column(self, name: str) -> list[float | None]:
        """One number of every epoch, None where it is missing or not finite."""
        return [finite(epoch.get(name)) for epoch in self.epochs]


def label_by_settings(settings: Mapping[str, Any]) -> str:
    """What the studies call this way of training: off, clip, full, hold+rms+clip…"""
    staged = bool(settings.get("stages"))
    built_on = {
        "identity": settings.get("recurrent") == "identity",
        "input_gain": settings.get("input_gain", 1.0) != 1.0,
        "growth": staged and bool(settings.get("rate_by_length")),
        "stages": staged and not settings.get("rate_by_length"),
        "wide": staged and bool(settings.get("batch_by_length")),
        "rms_decay": settings.get("rms_decay") is not None,
    }
    options = tuple((name, 1.0) for name, given in built_on.items() if given)
    return label_of(_method(settings.get("sieve")), options, settings.get("clip") is not None)


def _method(sieve: object) -> str:
    """The paper's skip by its estimator, everything else by its policy."""
    if not isinstance(sieve, Mapping):
        return "off"
    policy = str(sieve.get("policy", "skip"))
    if policy != "skip":
        return policy
    listing = sieve.get("orientation") == "listing"
    return "listing" if listing else str(sieve.get("estimator", "full"))


def finite(value: object) -> float | None:
    """The value if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """The runs in these folders; each is a run, or holds runs at any depth."""
    runs: list[Run] = []
    for folder in folders:
        if not folder.is_dir():
            raise InvalidFile(f"{folder}: no such folder")
        found = [read_run(path) for path in run_folders(folder)]
        if not found:
            raise InvalidFile(f"{folder}: neither a run nor a folder of runs ({SETTINGS_FILE})")
        runs += [run for run in found if run.folder not in {known.folder for known in runs}]
    return runs


def run_folders(folder: Path) -> Iterator[Path]:
    """The folders at or under this one that hold a run, in a natural order of their names."""
    if (folder / SETTINGS_FILE).is_file():
        yield folder
        return
    found = {path.parent for path in folder.rglob(SETTINGS_FILE)}
    yield from sorted(found, key=lambda path: [_natural(part) for part in path.parts])


def _natural(name: str) -> tuple[str, int]:
    """full-2 before full-10."""
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    return stem, int(digits) if digits else -1


def read_run(folder: Path) -> Run:
    settings = _read_object(folder / SETTINGS_FILE)
    if settings is None or settings.get("format") != FORMAT:
        raise InvalidFile(
            f"{folder / SETTINGS_FILE}: not the settings of a gradsieve run (format {FORMAT!r})"
        )
    epochs, damaged = _read_history(folder / HISTORY_FILE)
    return Run(folder, settings, epochs, _read_object(folder / RESULT_FILE), damaged)


def _read_object(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None where there is none (yet)."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _read_history(path: Path) -> tuple[tuple[dict[str, Any], ...], int]:
    """Epochs by number and how many lines were no epoch.

    A resumed run writes an epoch again that it had written before it was killed: the later line
    counts. The last line of a running one may be half written: it is not counted as damaged.
    """
    try:
        content = path.read_bytes()
    except OSError:
        return (), 0
    lines = content.split(b"\n")
    epochs: dict[int, dict[str, Any]] = {}
    damaged = 0
    for position, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            epochs[int(record["epoch"])] = record
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            damaged += position < len(lines) - 1
    return tuple(epochs[number] for number in sorted(epochs)), damaged
