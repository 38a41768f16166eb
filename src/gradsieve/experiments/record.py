"""The record of a study: one CSV row per network, readable by people and by a store."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gradsieve.errors import InvalidFile
from gradsieve.experiments.config import REPORTED, RunConfig
from gradsieve.experiments.older import upgraded
from gradsieve.experiments.store import Store
from gradsieve.files import open_file, write_atomically
from gradsieve.recipe.optimiser import AUTO

COLUMNS = (
    "task", "length", "sieve", "seed", "test_accuracy", "validation_accuracy", "kept", "stalls",
    "updates", "seconds", "learning_rate", "clip", "within_0.04", "within_0.08", "final_Q",
    "nonfinite", "best_epoch", "stopped", "validation_loss", "config",
)  # fmt: skip


# Further columns of the studies of our own recipe.
OF_OUR_RECIPE = (*COLUMNS[:-1], "corrected", "cpu_ms", "squared_error", "curve", "at_length",
                 "config")  # fmt: skip
Items = Iterable[tuple[RunConfig, dict[str, Any]]]


def write_csv(path: Path, store: Store, reported: bool) -> None:
    """All rows of the reported networks, or of the networks of the search."""
    chosen = (item for item in store.items() if (item[0].network in REPORTED) is reported)
    write_rows(path, chosen, COLUMNS)


def write_rows(path: Path, items: Items, columns: Sequence[str]) -> None:
    """These rows; lists and dictionaries as JSON."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    rows = sorted(items, key=lambda item: (item[0].condition.length, item[0].condition.task,
                                           item[0].arm, item[0].as_json()))  # fmt: skip
    for config, row in rows:
        told = {name: _told(value) for name, value in row.items()}
        writer.writerow(told | {"config": config.as_json()})
    write_atomically(path, text.getvalue())


def _told(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value


def read_csv(path: Path, store: Store) -> int:
    """Put a record's rows into a store, so that a study goes on from them; how many there were."""
    try:
        with open_file(path) as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
    except OSError as error:
        raise InvalidFile(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidFile(f"{path}: not a record of runs, which is CSV ({error})") from error
    found = []
    for number, row in enumerate(rows, start=2):
        try:
            config = upgraded(json.loads(row.pop("config")))
            values = {name: _value(name, text) for name, text in row.items()}
            found.append((config, values | {"sieve": config.arm}))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InvalidFile(f"{path}, line {number}: not a row of a record ({error})") from error
    for config, values in found:  # all of them are whole: now they are kept
        store.add(config, values)
    return len(found)


def _value(name: str, text: str) -> Any:
    if name in ("task", "sieve", "stopped") or text == AUTO:
        return text
    return None if text == "" else json.loads(text)
