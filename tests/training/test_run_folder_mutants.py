"""Damaged run folders: a run goes on to the very result of an undisturbed one, or says why not."""

import numpy as np
import pytest

import gradsieve as gs
from mutants import mutants, put, right_or_refused

TASK = gs.tasks.temporal_order(length=10)
NET = gs.SRN.random(TASK.inputs, 3, TASK.outputs, output=TASK.output, seed=0)
SMALL = {"epochs": 4, "validate_every": 1, "iterations": 2, "batch": 3, "sizes": (10, 5, 5)}
COUNTS = {"checkpoint.safetensors": 1000, "run.json": 400, "history.jsonl": 400,
          "initial.safetensors": 200}  # fmt: skip


def train(folder, **more):
    return gs.train(NET, TASK, folder=folder, **SMALL, **more)


def stop_at_two(record):
    if record["epoch"] >= 2:
        raise KeyboardInterrupt


def told(run):
    """All of a run but how long it took."""
    history = [{k: v for k, v in record.items() if k != "seconds"} for record in run.history]
    weights = run.network.flat.tobytes(), run.final.flat.tobytes()
    return weights, history, run.test_accuracy, run.best_epoch, run.updates, run.stopped


@pytest.fixture(scope="module")
def expected():
    return told(train(None))


@pytest.fixture(scope="module")
def halfway(tmp_path_factory):
    """The files of a run that was stopped in the middle."""
    folder = tmp_path_factory.mktemp("halfway") / "run"
    assert train(folder, on_record=stop_at_two).stopped == "interrupted"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def stop_at_once(record):
    raise KeyboardInterrupt


def test_a_run_that_was_stopped_before_its_first_checkpoint_goes_on(tmp_path, expected):
    for _ in range(2):
        assert train(tmp_path, on_record=stop_at_once).stopped == "interrupted"
    assert told(train(tmp_path)) == expected


def test_the_run_goes_on_to_the_same_result(tmp_path, halfway, expected):
    for name, content in halfway.items():
        put(tmp_path / name, content)
    assert told(train(tmp_path)) == expected


@pytest.mark.parametrize("name", COUNTS)
def test_mutants_of_a_run_folder(tmp_path, capfd, halfway, expected, name):
    went_on = 0
    for content in mutants(halfway[name], COUNTS[name]):
        for other in tmp_path.iterdir():
            other.unlink()
        for other, whole in halfway.items():
            put(tmp_path / other, content if other == name else whole)
        went_on += right_or_refused(lambda: train(tmp_path), lambda run: told(run) == expected)
    if name.endswith("safetensors"):
        assert went_on == 0
    assert capfd.readouterr() == ("", "")


def test_what_is_taken_from_a_mutant_is_never_nan(tmp_path, halfway):
    """A checkpoint whose checksum is right and whose weights are not is refused all the same."""
    from safetensors.numpy import load

    from gradsieve.tensors import read_tensors, tensor_bytes

    path = tmp_path / "checkpoint.safetensors"
    put(path, halfway[path.name])
    names = list(load(halfway[path.name]))
    metadata = read_tensors(path, names, "gradsieve-checkpoint-2", "checkpoint")[1]
    for name in names:
        for value in (np.nan, np.inf):
            arrays = {key: array.copy() for key, array in load(halfway[path.name]).items()}
            arrays[name][0] = value if not name.endswith("square") else -1
            for other, whole in halfway.items():
                put(tmp_path / other, whole)
            put(path, tensor_bytes(arrays, metadata))
            assert not right_or_refused(lambda: train(tmp_path), lambda run: False)
