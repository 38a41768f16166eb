"""Where the results of a study are kept as they come: one SQLite file, one row a run.

A row is written in one transaction when its run has ended, so that a kill or a power loss leaves
whole rows only. The committed record (`results/`) can be read back into a store, so that nothing
that is known is computed again.
"""

from __future__ import annotations

import fcntl
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.experiments.config import RunConfig

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    config TEXT NOT NULL,
    row TEXT NOT NULL
) STRICT
"""


class Store:
    """Rows by the key of their configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=60)
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute(SCHEMA)
            self._connection.commit()
        except (OSError, sqlite3.Error) as error:
            raise InvalidFile(f"{path}: cannot be used as a store ({error})") from error

    def add(self, config: RunConfig, row: dict[str, Any]) -> None:
        """Keep a row; a configuration that has one already is left as it is."""
        try:
            with self._connection:
                self._connection.execute(
                    "INSERT OR IGNORE INTO runs VALUES (?, ?, ?)",
                    (config.key, config.as_json(), json.dumps(row, sort_keys=True)),
                )
        except sqlite3.Error as error:
            raise GradsieveError(f"{self.path}: cannot be written ({error})") from error

    def get(self, config: RunConfig) -> dict[str, Any] | None:
        found = self._connection.execute(
            "SELECT row FROM runs WHERE key = ?", (config.key,)
        ).fetchone()
        return None if found is None else json.loads(found[0])

    def missing(self, configs: Iterable[RunConfig]) -> list[RunConfig]:
        """Those that have no row yet, each once, in order."""
        known = {key for (key,) in self._connection.execute("SELECT key FROM runs")}
        unique = {config.key: config for config in configs}
        return [config for key, config in unique.items() if key not in known]

    def items(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        """Every row with its configuration, in an order that does not depend on when it came."""
        query = "SELECT config, row FROM runs ORDER BY key"
        return [
            (RunConfig.from_json(config), json.loads(row))
            for config, row in self._connection.execute(query)
        ]

    def close(self) -> None:
        self._connection.close()


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Only one `reproduce` works in a folder at a time; the lock goes with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise GradsieveError(
                f"{folder}: another gradsieve reproduce is at work there; wait for it, or look "
                "with --status"
            ) from error
        yield
