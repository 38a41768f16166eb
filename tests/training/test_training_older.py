"""Run folders of version 0.1: what they say, in this version's form; none is overwritten."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.training.older import FORMAT, OLD_FORMAT, upgraded

TASK = gs.tasks.temporal_order(length=100)
# As version 0.1 wrote it: what the run is, its flat settings, its sieve.
SETTINGS = {
    "learning_rate": 1e-4, "momentum": 0.9, "clip": 1.0, "rms_decay": 0.999, "rms_bound": 10.0,
    "warmup": 0.01, "cooldown": 1.0, "retreat": 6.0, "stages": [[20, 40], [50, 57]],
    "rate_by_length": 1.5, "batch_by_length": 2.0, "batch": 20, "epochs": 400, "iterations": 50,
    "seed": 3, "sizes": [20000, 1000, 10000], "validate_every": 5, "stop_at": 0.99,
    "patience": None, "reset_velocity": True, "measure": "Q", "probe_every": 10,
    "engine": "native",
}  # fmt: skip
SIEVE = {
    "q_range": [-2.0, 0.5], "max_change": None, "estimator": "full", "policy": "hold",
    "horizon": None, "on_skip": "reset", "stall_after": 50, "steer_rate": 0.02, "window": 0.7,
    "orientation": "text",
}  # fmt: skip
OLD = {
    "format": OLD_FORMAT, "label": "hold+rms", "network": 3, "variance": 0.01,
    "task": "temporal_order", "length": 100, "convention": "author", "tolerance": None,
    "chance": 0.25, "inputs": 6, "hidden": 100, "outputs": 4, "output": "softmax",
    "dtype": "float32", "sieve": SIEVE, **SETTINGS, "versions": {"gradsieve": "0.1.0"},
}  # fmt: skip


def recipe_of(stored):
    return gs.Recipe.from_dict(json.loads(json.dumps(upgraded(stored)))["recipe"])


def test_every_setting_of_an_older_run_has_its_present_name():
    new, recipe = upgraded(OLD), recipe_of(OLD)
    assert new["format"] == FORMAT
    for name in ("label", "network", "task", "length", "chance", "hidden", "dtype", "seed",
                 "engine", "versions"):  # fmt: skip
        assert new[name] == OLD[name]
    assert recipe == gs.Recipe(
        start=gs.Start(variance=0.01),
        optimiser=gs.Optimiser(
            learning_rate=1e-4, momentum=0.9, clip=1.0, rms_decay=0.999, rms_bound=10.0
        ),
        sieve=gs.Sieve("hold", (-2.0, 0.5), limit=float("inf")),
        schedule=gs.Schedule(warm_up=0.01, cool_down=1.0, roll_back=6.0),
        curriculum=gs.Curriculum(((0.2, 0.1), (0.5, 0.1425)), rate_power=1.5, batch_power=2.0),
        budget=gs.Budget(epochs=400, batch=20, validate_every=5),
    )


def test_how_its_network_began_is_read_where_it_was_said():
    bent = recipe_of(OLD | {"recurrent": "identity", "input_gain": 16.0, "bias_spread": 0.5})
    assert bent.start == gs.Start("identity", 0.01, input_gain=16.0, bias_spread=0.5)


def test_its_corrections_were_not_bounded_and_it_looked_at_every_update():
    sieve = recipe_of(OLD).sieve
    assert (sieve.limit, sieve.every) == (float("inf"), 1)


@given(
    length=st.integers(60, 1000),
    epochs=st.integers(20, 2000),
    stages=st.lists(st.tuples(st.integers(10, 59), st.integers(1, 9)), max_size=2),
)
def test_stages_in_steps_and_epochs_come_back_as_the_same_steps_and_epochs(length, epochs, stages):
    old = OLD | {"length": length, "epochs": epochs, "stages": [list(stage) for stage in stages]}
    assert recipe_of(old).curriculum.lengths(length, epochs) == tuple(stages)


def test_a_run_without_a_sieve_and_one_that_knew_fewer_settings_are_read_too():
    assert recipe_of(OLD | {"sieve": None}).sieve is None
    few = {name: value for name, value in OLD.items() if name not in SETTINGS or name == "epochs"}
    assert recipe_of(few | {"sieve": None}) == gs.Recipe().replaced(variance=0.01, epochs=400)


def test_initial_weights_are_known_by_their_seed_where_their_variance_was_said():
    assert upgraded(OLD)["drawn_by"] == 3
    unknown = {name: value for name, value in OLD.items() if name != "variance"}
    assert upgraded(unknown)["drawn_by"] is None


def test_a_run_of_this_version_is_left_as_it_is():
    new = upgraded(OLD)
    assert upgraded(new) is new


@pytest.mark.parametrize("stages", [None, 7, [7], [[1]], [["a", "b"]], {"a": 1}])
def test_stages_that_cannot_be_read_are_none(stages):
    assert recipe_of(OLD | {"stages": stages}).curriculum.stages == ()


def test_a_folder_of_an_older_run_is_refused_with_what_to_do_and_kept(tmp_path):
    net = gs.SRN.random(6, 5, 4)
    net.save(tmp_path / "initial.safetensors")
    (tmp_path / "run.json").write_text(json.dumps(OLD))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(gs.InvalidFile, match=r"gradsieve 0\.1 recorded.*choose another output"):
        gs.train(net, TASK, folder=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_goes_on_where_its_file_lacks_a_setting_that_has_the_default_since(tmp_path):
    task = gs.tasks.temporal_order(length=20)
    net = gs.SRN.random(task.inputs, 6, task.outputs, variance=0.1)
    asked = {"epochs": 2, "iterations": 3, "sizes": (30, 20, 20), "sieve": "hold"}
    gs.train(net, task, gs.Recipe(), **asked, folder=tmp_path)
    path = tmp_path / "run.json"
    stored = json.loads(path.read_text())
    del stored["recipe"]["sieve"]["every"], stored["recipe"]["schedule"]
    path.write_text(json.dumps(stored))
    assert gs.train(net, task, gs.Recipe(), **asked, folder=tmp_path).updates == 6
    with pytest.raises(gs.InvalidFile, match="differs in every, cool_down"):
        gs.train(net, task, gs.Recipe(), **asked, every=2, cool_down=0.5, folder=tmp_path)
