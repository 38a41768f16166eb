"""The store keeps whole rows, once each, and the record goes out to CSV and back."""

import pytest

from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.experiments import beyond, record, search, study
from gradsieve.experiments.config import Cell, RunConfig
from gradsieve.experiments.methods import settings_of
from gradsieve.experiments.store import Store, sole_writer
from gradsieve.experiments.study import Arm, Scope

ADDING = Cell("adding", 100)


def config(network=0, **changes):
    return RunConfig("adding", 100, "off", network, 1e-5, **changes)


def row(accuracy, **changes):
    return {
        "task": "adding", "length": 100, "sieve": "off", "seed": 0, "test_accuracy": accuracy,
        "validation_accuracy": accuracy, "validation_loss": 0.1, "kept": 1.0, "stalls": 0,
        "updates": 10, "seconds": 1.5, "learning_rate": 1e-5, "clip": None, "within_0.04": 0.1,
        "within_0.08": 0.2, "final_Q": None, "nonfinite": 0, "best_epoch": 1, "stopped": "epochs",
    } | changes  # fmt: skip


def test_a_row_is_there_after_the_store_was_closed(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(config(), row(0.5))
    store.close()
    assert Store(tmp_path / "store.sqlite").get(config()) == row(0.5)


def test_a_configuration_keeps_its_first_row(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(config(), row(0.5))
    store.add(config(), row(0.7))
    assert store.get(config())["test_accuracy"] == 0.5


def test_missing_gives_each_configuration_once_and_in_order(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    store.add(config(1), row(0.5))
    assert store.missing([config(2), config(1), config(0), config(2)]) == [config(2), config(0)]


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
    store.add(config(0), row(0.5))
    store.add(config(3, options=(("kept", 0.5),)), row(0.25, seed=3))
    store.add(config(1000), row(0.75, seed=1000))
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


def test_the_search_waits_for_all_of_its_runs_and_then_takes_the_best_mean(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    runs = search.configs(ADDING, "not clipped", epochs=30, networks=3)
    for run in runs[:-1]:
        store.add(run, row(0.9 if run.learning_rate == 1e-4 else 0.2))
    assert search.choose(store, ADDING, "not clipped", epochs=30, networks=3) is None
    store.add(runs[-1], row(0.2))
    assert search.choose(store, ADDING, "not clipped", 30, 3) == search.Choice(1e-4, None)


def test_of_equal_accuracies_the_lower_loss_wins(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    for run in search.configs(ADDING, "clipped", epochs=30, networks=3):
        store.add(run, row(0.154, validation_loss=0.05 if run.clip == 0.3 else 0.08))
    assert search.choose(store, ADDING, "clipped", 30, 3) == search.Choice(1e-3, 0.3)


def test_hold_has_a_search_of_its_own_that_a_reported_run_follows(tmp_path):
    store, scope = Store(tmp_path / "store.sqlite"), Scope(epochs=30)
    arms = (Arm("hold", clipped=True),)
    wanted = study.cell_configs(arms, ADDING, scope, store)
    assert {run.method for run in wanted} == {"hold"}
    assert {run.network for run in wanted} == set(search.NETWORKS)
    for run in wanted:
        store.add(run, row(0.9 if run.option("gain", 1.0) == 0.7 else 0.2))
    reported = study.cell_configs(arms, ADDING, scope, store)
    assert [run.network for run in reported] == list(range(10))
    assert {run.options for run in reported} == {(("gain", 0.7),)}
    assert {run.label for run in reported} == {"hold+clip"}


def test_of_equally_solved_ones_the_fewer_updates_win(tmp_path):
    store = Store(tmp_path / "store.sqlite")
    for run in search.configs(ADDING, "scaled hold", epochs=30, networks=3):
        quick = {"updates": 5, "validation_loss": 0.2} if run.clip == 2.0 else {}
        store.add(run, row(1.0, **quick))
    assert search.choose(store, ADDING, "scaled hold", 30, 3).clip == 2.0


def test_an_arm_whose_search_is_done_runs_beside_the_searches_of_others(tmp_path):
    store, scope = Store(tmp_path / "store.sqlite"), Scope(epochs=30)
    arms = (Arm("off", clipped=True, scaled=True), Arm("hold", clipped=True, scaled=True))
    for run in search.configs(ADDING, "scaled hold", epochs=30, networks=10):
        assert run.label == "hold+rms+clip"
        store.add(run, row(0.5))
    wanted = study.cell_configs(arms, ADDING, scope, store)
    assert {run.label for run in wanted if run.network in search.NETWORKS} == {"rms+clip"}
    assert [run.label for run in wanted if run.network < 1000] == 10 * ["hold+rms+clip"]
    assert study.cell_configs(arms, ADDING, Scope(arms=("clip",)), store) == []
    only = Scope(epochs=30, arms=("hold+rms+clip",))
    assert {run.label for run in study.cell_configs(arms, ADDING, only, store)} == set(only.arms)


def test_a_scaled_run_is_scaled_and_cooled_down(tmp_path):
    store, arm = Store(tmp_path / "store.sqlite"), Arm("hold", clipped=True, scaled=True)
    settings = settings_of(study.cell_configs((arm,), ADDING, Scope(), store)[0])
    assert (settings.rms_decay, settings.cooldown) == (0.999, 1.0)
    assert settings.sieve.policy == "hold"
    plain = settings_of(config(0))
    assert (plain.rms_decay, plain.cooldown) == (None, None)


def test_the_start_of_hold_is_tried_without_it_where_it_is_another_than_clippings(tmp_path):
    for gain, methods in ((0.7, {"off", "hold", "start"}), (1.0, {"off", "hold"})):
        store = Store(tmp_path / f"{gain}.sqlite")
        scope = Scope(tasks=("adding",), lengths=(100,), epochs=30)
        for run in beyond.plan(scope, store):
            store.add(run, row(0.9 if run.option("gain", gain) == gain else 0.2))
        reported = beyond.plan(scope, store)
        assert {run.method for run in reported} == methods
        started = [run for run in reported if run.label in ("hold+clip", "start+clip")]
        assert all(run.option("gain", 1.0) == gain for run in started)
