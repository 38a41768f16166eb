"""Damaged stores and records: the rows that were kept, or one line that says why not."""

import os
import sqlite3

import pytest
from rows import row, run

from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.experiments import record
from gradsieve.experiments.store import Store, sole_writer
from mutants import mutants, put, right_or_refused

CONFIGS = [run(network) for network in range(30)]
NEW = run(99)


def made_store(path):
    store = Store(path)
    for number, config in enumerate(CONFIGS):
        store.add(config, row(number / 100))
    items = store.items()
    store.close()
    return items


def used(path):
    """Everything that is done with a store."""
    store = Store(path)
    try:
        items = store.items()
        missing = store.missing([*CONFIGS, NEW])
        found = [store.get(config) for config in CONFIGS]
        store.add(NEW, row(0.5))
        return items, missing, found, store.get(NEW)
    finally:
        store.close()


def clean(path):
    for name in (path, *(path.with_name(path.name + end) for end in ("-journal", "-wal", "-shm"))):
        name.unlink(missing_ok=True)


def test_mutants_of_a_store(tmp_path, capfd):
    path = tmp_path / "store.sqlite"
    items = made_store(path)
    by_config = dict(items)

    def right(found):
        rows, missing, each, new = found
        kept = dict(rows)
        return (
            all(by_config[config] == value for config, value in kept.items())
            and [value for value in each if value is not None] == [
                by_config[config] for config in CONFIGS if config in kept
            ]
            and {config for config in CONFIGS if config not in kept} | {NEW} == set(missing)
            and new == row(0.5)
        )  # fmt: skip

    whole = path.read_bytes()
    for content in mutants(whole, 1500):
        clean(path)
        put(path, content)
        right_or_refused(lambda: used(path), right)
    assert capfd.readouterr() == ("", "")


def changed(tmp_path, statement, *values):
    path = tmp_path / "store.sqlite"
    made_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute(statement, values)
    connection.close()
    return path


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "\ud800".encode("utf-8", "replace").decode()])
def test_a_row_that_is_no_object_is_refused_by_name(tmp_path, text):
    path = changed(tmp_path, "UPDATE runs SET row = ?, checksum = NULL", text)
    with pytest.raises(InvalidFile, match=r"store\.sqlite"):
        used(path)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"recipe": 5}', '{"network": [[1]]}'])
def test_a_configuration_that_is_none_is_refused_by_name(tmp_path, text):
    path = changed(tmp_path, "UPDATE runs SET config = ?, checksum = NULL", text)
    with pytest.raises(InvalidFile, match=r"store\.sqlite"):
        used(path)


def test_a_changed_row_is_refused(tmp_path):
    path = changed(tmp_path, "UPDATE runs SET row = replace(row, '0.05', '0.95')")
    with pytest.raises(InvalidFile, match="checksum"):
        used(path)


@pytest.mark.parametrize(
    "schema", ["CREATE TABLE runs (a)", "CREATE VIEW runs AS SELECT 1 AS key, 2 AS config"]
)
def test_a_foreign_table_is_refused(tmp_path, schema):
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute(schema)
    connection.close()
    with pytest.raises(InvalidFile, match=r"store\.sqlite"):
        used(path)


def test_a_store_of_an_older_version_is_read_and_goes_on(tmp_path):
    path = tmp_path / "store.sqlite"
    items = made_store(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE old (key TEXT PRIMARY KEY, config TEXT, row TEXT) STRICT")
        connection.execute("INSERT INTO old SELECT key, config, row FROM runs")
        connection.execute("DROP TABLE runs")
        connection.execute("ALTER TABLE old RENAME TO runs")
    connection.close()
    assert Store.snapshot(path).items() == items
    store = Store(path)
    assert store.items() == items
    store.add(NEW, row(0.5))
    assert store.get(NEW) == row(0.5)


def test_a_snapshot_makes_and_changes_nothing(tmp_path):
    nothing = Store.snapshot(tmp_path / "new" / "store.sqlite")
    assert nothing.items() == []
    nothing.add(NEW, row(0.5))
    assert not (tmp_path / "new").exists()
    path = tmp_path / "store.sqlite"
    made_store(path)
    before = path.read_bytes()
    copy = Store.snapshot(path)
    copy.add(NEW, row(0.5))
    assert copy.get(NEW) is not None
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_store_or_a_record_that_is_no_file_is_refused_and_not_waited_for(tmp_path, make):
    for name in ("store.sqlite", "runs.csv"):
        make(tmp_path / name)
    for action in (
        lambda: Store(tmp_path / "store.sqlite"),
        lambda: Store.snapshot(tmp_path / "store.sqlite"),
        lambda: record.read_csv(tmp_path / "runs.csv", Store(tmp_path / "other.sqlite")),
    ):
        assert not right_or_refused(action, lambda found: False)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, os.mknod])
def test_what_is_called_lock_is_in_nobodys_way(tmp_path, make):
    make(tmp_path / "lock")
    with sole_writer(tmp_path), pytest.raises(GradsieveError, match="another process"):
        sole_writer(tmp_path).__enter__()
    with sole_writer(tmp_path):
        pass


def test_mutants_of_a_record(tmp_path, capfd):
    path = tmp_path / "runs.csv"
    store = Store(tmp_path / "store.sqlite")
    for number, config in enumerate(CONFIGS[:5]):
        store.add(config, row(number / 100))
    record.write_csv(path, store, reported=True)
    for content in mutants(path.read_bytes(), 1500):
        put(path, content)
        other = Store.snapshot(tmp_path / "none.sqlite")
        whole = right_or_refused(
            lambda other=other: record.read_csv(path, other), lambda count: count >= 0
        )
        assert whole or not other.items()
    for content in (b"\x00\x01\xff" * 50, b"\x89PNG\r\n", b"config\n" + b"[" * 100_000):
        put(path, content)
        empty = Store.snapshot(tmp_path / "none.sqlite")
        right_or_refused(lambda empty=empty: record.read_csv(path, empty), lambda count: count == 0)
    assert capfd.readouterr() == ("", "")


def test_a_record_with_one_bad_row_adds_none(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(CONFIGS[0], row(0.5))
    record.write_csv(tmp_path / "runs.csv", store, reported=True)
    with (tmp_path / "runs.csv").open("a") as file:
        file.write("adding,{}\n")
    other = Store(tmp_path / "other.sqlite")
    with pytest.raises(InvalidFile, match="line 3"):
        record.read_csv(tmp_path / "runs.csv", other)
    assert other.items() == []
