"""Where the results of a study are kept as they come: one SQLite file, one row a run.

A row is written in one transaction when its run has ended, so that a kill or a power loss leaves
whole rows only, and with a checksum, so that a damaged one is refused. The committed record
(`results/`) can be read back into a store, so that its runs are not computed again.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self

from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.experiments.config import RunConfig
from gradsieve.files import check_file, parse_object, sole_owner

SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY,
    config TEXT NOT NULL,
    row TEXT NOT NULL,
    checksum TEXT
) STRICT
"""
UNREADABLE = (sqlite3.Error, UnicodeError)  # SQLite's own messages may quote damaged bytes
COLUMNS = ["key", "config", "row", "checksum"]


class Store:
    """Rows by the key of their configuration."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                check_file(path)
            self._open(sqlite3.connect(path, timeout=60))
        except (OSError, *UNREADABLE) as error:
            raise InvalidFile(f"{path}: cannot be used as a store ({error})") from error

    @classmethod
    def snapshot(cls, path: Path) -> Self:
        """A copy of a store in memory; the file is left as it is, and need not exist."""
        store = cls.__new__(cls)
        store.path = path
        copy = sqlite3.connect(":memory:")
        try:
            if path.exists():
                check_file(path)
                original = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)
                original.backup(copy)
                original.close()
            store._open(copy)
        except (OSError, *UNREADABLE) as error:
            raise InvalidFile(f"{path}: cannot be used as a store ({error})") from error
        return store

    def _open(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(SCHEMA)
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(runs)")]
        if columns == COLUMNS[:3]:  # of an older version
            connection.execute("ALTER TABLE runs ADD COLUMN checksum TEXT")
        elif columns != COLUMNS:
            raise InvalidFile(f"{self.path}: its table 'runs' is not that of a gradsieve store")
        connection.commit()

    def add(self, config: RunConfig, row: dict[str, Any]) -> None:
        """Keep a row; a configuration that has one already is left as it is."""
        texts = config.key, config.as_json(), json.dumps(row, sort_keys=True)
        try:
            with self._connection:
                self._connection.execute(
                    "INSERT OR IGNORE INTO runs VALUES (?, ?, ?, ?)", (*texts, _checksum(*texts))
                )
        except UNREADABLE as error:
            raise GradsieveError(f"{self.path}: cannot be written ({error})") from error

    def get(self, config: RunConfig) -> dict[str, Any] | None:
        found = self._rows("WHERE key = ?", config.key)
        return found[0][2] if found else None

    def those_of(self, configs: Iterable[RunConfig]) -> list[tuple[RunConfig, dict[str, Any]]]:
        """The rows that there are of these configurations."""
        rows = ((config, self.get(config)) for config in configs)
        return [(config, row) for config, row in rows if row is not None]

    def missing(self, configs: Iterable[RunConfig]) -> list[RunConfig]:
        """Those that have no row yet, each once, in order."""
        known = {key for key, *_ in self._rows("")}
        unique = {config.key: config for config in configs}
        return [config for key, config in unique.items() if key not in known]

    def items(self) -> list[tuple[RunConfig, dict[str, Any]]]:
        """Every row with its configuration, in an order that does not depend on when it came."""
        found = []
        for key, text, row in self._rows("ORDER BY key"):
            try:
                found.append((RunConfig.from_json(text), row))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise self._damaged(key, error) from error
        return found

    def _rows(self, where: str, *values: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Keys, configurations and rows, each checked against its checksum."""
        try:
            query = f"SELECT {', '.join(COLUMNS)} FROM runs {where}"
            found = self._connection.execute(query, values).fetchall()
        except UNREADABLE as error:
            raise InvalidFile(f"{self.path}: cannot be read as a store ({error})") from error
        rows = []
        for key, config, row, checksum in found:
            if not all(isinstance(text, str) for text in (key, config, row)):
                raise self._damaged(key, "it holds no text")
            if checksum is not None and checksum != _checksum(key, config, row):
                raise self._damaged(key, "its checksum does not match")
            rows.append((key, config, parse_object(f"{self.path}, row {key}", row)))
        return rows

    def _damaged(self, key: str, why: object) -> InvalidFile:
        return InvalidFile(
            f"{self.path}: row {key} is damaged ({why}); remove the file, and go on from a record "
            "with --from-record"
        )

    def close(self) -> None:
        self._connection.close()


def sole_writer(folder: Path) -> AbstractContextManager[None]:
    """Only one `reproduce` works in a folder at a time; the lock goes with the process."""
    return sole_owner(folder, "computing a study", patience=0)


def _checksum(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode("utf-8", "replace")).hexdigest()
