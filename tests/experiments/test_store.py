"""The store keeps whole rows, once each, and the record goes out to CSV and back."""

import pytest
from rows import row, run

from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.experiments import record
from gradsieve.experiments.baselines import RandomSkip
from gradsieve.experiments.store import Store, sole_writer


def test_a_row_is_there_after_the_store_was_closed(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(run(), row(0.5))
    store.close()
    assert Store(tmp_path / "store.sqlite").get(run()) == row(0.5)


def test_a_configuration_keeps_its_first_row(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(run(), row(0.5))
    store.add(run(), row(0.7))
    assert store.get(run())["test_accuracy"] == 0.5


def test_missing_gives_each_configuration_once_and_in_order(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(run(1), row(0.5))
    assert store.missing([run(2), run(1), run(0), run(2)]) == [run(2), run(0)]


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "store.sqlite").write_text("not a database at all, but long enough to look at")
    with pytest.raises(InvalidFile, match="store"):
        Store(tmp_path / "store.sqlite")


def test_only_one_writer_works_in_a_folder(tmp_path):
    with (
        sole_writer(tmp_path),
        pytest.raises(GradsieveError, match="another"),
        sole_writer(tmp_path),
    ):
        pass


def test_the_record_goes_out_and_back(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(run(0, arm="SGD"), row(0.5))
    store.add(
        run(3, baseline=RandomSkip(0.5), arm="random skipping"),
        row(0.25, seed=3, sieve="random skipping"),
    )
    store.add(run(1000, arm="SGD"), row(0.75, seed=1000))
    record.write_csv(tmp_path / "runs.csv", store, reported=True)
    record.write_csv(tmp_path / "search.csv", store, reported=False)
    other = Store(tmp_path / "other.sqlite")
    assert record.read_csv(tmp_path / "runs.csv", other) == 2
    assert record.read_csv(tmp_path / "search.csv", other) == 1
    assert other.items() == store.items()


def test_a_foreign_csv_names_its_line(tmp_path):
    (tmp_path / "runs.csv").write_text("task,config\nadding,{}\n")
    with pytest.raises(InvalidFile, match="line 2"):
        record.read_csv(tmp_path / "runs.csv", Store(tmp_path / "store.sqlite"))
