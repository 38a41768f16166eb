"""Reading run folders: the recipe, the history and the result.

A folder may come from a run that still goes on, was killed, or was damaged, so reading never
trusts it: a line of the history that does not parse is counted and left out, a number that is not
a finite number is None. A folder without a run, or whose recipe is none, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.files import parse_json, read_file
from gradsieve.recipe import Recipe
from gradsieve.sieve import POLICIES, Sieve
from gradsieve.training.corrections import finite
from gradsieve.training.older import FORMAT, OLD_FORMAT, upgraded

SETTINGS_FILE = "run.json"
HISTORY_FILE = "history.jsonl"
RESULT_FILE = "result.json"
SLOW = "slow_Q"


@dataclass(frozen=True)
class RecordedRun:
    """One network's training, as its folder tells it."""

    folder: Path
    about: Mapping[str, Any]  # the entries of run.json beside the recipe
    recipe: Recipe
    epochs: tuple[Mapping[str, Any], ...]  # by epoch number, each once
    result: Mapping[str, Any] | None = None  # None while it is not finished
    damaged_lines: int = 0

    @property
    def task(self) -> str:
        return str(self.about.get("task", "unknown task"))

    @property
    def label(self) -> str:
        """The name of its way of training: as whoever trained it called it, or its policy."""
        named = self.about.get("label")
        if named is not None:
            return str(named)
        return "off" if self.recipe.sieve is None else self.recipe.sieve.policy

    @property
    def network(self) -> str:
        """Which initial network it started from; runs of the same one are compared in pairs."""
        return str(self.about.get("network", self.about.get("seed", 0)))

    @property
    def own_recipe(self) -> bool:
        """Whether the recipe is how it was trained; of a PyTorch training it is the sieve alone."""
        return self.about.get("trained_by") is None

    @property
    def drawn(self) -> bool:
        """Whether the recipe's start drew the initial weights, so that a seed makes them again."""
        return isinstance(self.about.get("drawn_by"), int)

    @property
    def measure(self) -> str:
        """The column that its reach is judged by: slow Q, or Q where slow Q was not recorded."""
        return SLOW if any(epoch.get(SLOW) is not None for epoch in self.epochs) else "Q"

    @property
    def holds(self) -> bool:
        """Whether its policy judges by slow Q."""
        sieve = self.recipe.sieve
        return sieve is not None and POLICIES[sieve.policy].measure == "slow Q"

    @property
    def q_range(self) -> tuple[float, float] | None:
        """The safe range of its measure, where it is known."""
        sieve = self.recipe.sieve
        if self.measure == SLOW:
            return sieve.range if sieve is not None and self.holds else Sieve().range
        return None if sieve is None else sieve.range

    @property
    def stages(self) -> tuple[tuple[int, int], ...]:
        """The curriculum: steps and epochs of the shorter sequences that came first."""
        length = self.about.get("length")
        if not isinstance(length, int):
            return ()
        return self.recipe.curriculum.lengths(length, self.recipe.budget.epochs)

    @property
    def chance(self) -> float | None:
        """The score of a constant guess."""
        return finite(self.about.get("chance"))

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


def read_runs(folders: Sequence[Path]) -> list[RecordedRun]:
    """The runs in these folders; each is a run, or holds runs at any depth."""
    runs: list[RecordedRun] = []
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


def read_run(folder: Path) -> RecordedRun:
    """The run of a folder, whichever version wrote it."""
    path = folder / SETTINGS_FILE
    stored = _read_object(path)
    if stored is None or stored.get("format") not in (OLD_FORMAT, FORMAT):
        raise InvalidFile(f"{path}: not the settings of a gradsieve run (format {FORMAT!r})")
    about = upgraded(stored)
    try:
        recipe = Recipe.from_dict(about.pop("recipe", None) or {})
    except GradsieveError as error:
        raise InvalidFile(f"{path}: {error}") from error
    epochs, damaged = _read_history(folder / HISTORY_FILE)
    return RecordedRun(folder, about, recipe, epochs, _read_object(folder / RESULT_FILE), damaged)


def _read_object(path: Path) -> dict[str, Any] | None:
    """A JSON object, or None where there is none (yet)."""
    try:
        content = parse_json(read_file(path))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _read_history(path: Path) -> tuple[tuple[dict[str, Any], ...], int]:
    """Epochs by number and how many lines were no epoch.

    A resumed run writes an epoch again that it had written before it was killed: the later line
    counts. The last line of a running one may be half written: it is not counted as damaged.
    """
    try:
        content = read_file(path)
    except (OSError, InvalidFile):
        return (), 0
    lines = content.split(b"\n")
    epochs: dict[int, dict[str, Any]] = {}
    damaged = 0
    for position, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
            epochs[int(record["epoch"])] = record
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            damaged += position < len(lines) - 1
    return tuple(epochs[number] for number in sorted(epochs)), damaged
