"""The run's folder: what is read back, and what is refused."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as to_safetensors

import gradsieve as gs
from gradsieve.tensors import tensor_bytes
from gradsieve.training.progress import Progress
from gradsieve.training.record import CHECKPOINT_FORMAT, FILES, Checkpoint, RunFolder
from gradsieve.training.roll_back import Refuge
from gradsieve.training.step import Stepper

TASK = gs.tasks.temporal_order(length=20)
NET = gs.SRN.random(TASK.inputs, 6, TASK.outputs, output=TASK.output, variance=0.1, seed=0)
SMALL = {"epochs": 2, "iterations": 3, "sizes": (30, 20, 20), "learning_rate": 1e-3}
PAPER = gs.recipes.paper("off")
SIEVE = Stepper(NET.copy(), gs.Recipe()).state()


@pytest.fixture
def finished(tmp_path):
    folder = tmp_path / "run"
    gs.train(NET, TASK, PAPER, **SMALL, folder=folder)
    return folder


def everything(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    rng = np.random.default_rng(0)
    weights, velocity, gradient, best = rng.normal(size=(4, 40)).astype(np.float32)
    progress = vars(Progress(epoch=3, best_accuracy=0.5, seconds=1.25))
    folder = RunFolder(tmp_path)
    assert folder.load_checkpoint(weights) is None
    folder.save_checkpoint(Checkpoint(weights, velocity, gradient, best, progress, SIEVE))
    found = folder.load_checkpoint(weights)
    assert (found.progress, found.sieve) == (progress, SIEVE)
    for name, array in (
        ("weights", weights),
        ("velocity", velocity),
        ("gradient", gradient),
        ("best", best),
    ):
        assert np.array_equal(getattr(found, name), array)
    mean_square = rng.normal(size=40) ** 2
    scaled = Checkpoint(weights, velocity, gradient, best, progress, SIEVE, mean_square, seen=7)
    folder.save_checkpoint(scaled)
    found = folder.load_checkpoint(weights, scaled=True)
    assert np.array_equal(found.mean_square, mean_square)
    assert found.seen == 7
    first = vars(Progress())
    folder.save_checkpoint(Checkpoint(weights, velocity, gradient, best, first, SIEVE))
    assert folder.load_checkpoint(weights).progress == first


def test_every_prefix_of_a_checkpoint_is_refused(tmp_path):
    zeros = np.zeros(5, dtype=np.float32)
    folder = RunFolder(tmp_path)
    folder.save_checkpoint(Checkpoint(zeros, zeros, zeros, zeros, vars(Progress()), SIEVE))
    path = tmp_path / "checkpoint.safetensors"
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(gs.InvalidFile, match=str(path)):
            folder.load_checkpoint(zeros)


def test_where_a_run_goes_back_to_comes_back_as_it_was_and_must_be_whole(tmp_path):
    zeros, ones = np.zeros(5, dtype=np.float32), np.ones(5, dtype=np.float32)
    folder = RunFolder(tmp_path)
    refuge = Refuge(ones, None, seen=0, loss=0.25, stage=20, share=0.5)
    folder.save_checkpoint(
        Checkpoint(zeros, zeros, zeros, zeros, vars(Progress()), SIEVE, refuge=refuge)
    )
    found = folder.load_checkpoint(zeros, rolls_back=True).refuge
    assert np.array_equal(found.weights, ones)
    assert (found.loss, found.stage, found.share) == (0.25, 20, 0.5)
    wrong = dataclasses.replace(refuge, share="half")
    folder.save_checkpoint(
        Checkpoint(zeros, zeros, zeros, zeros, vars(Progress()), SIEVE, refuge=wrong)
    )
    with pytest.raises(gs.InvalidFile, match="refuge"):
        folder.load_checkpoint(zeros, rolls_back=True)


@given(content=st.binary(max_size=200))
def test_random_bytes_are_no_checkpoint(tmp_path_factory, content):
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    (folder / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(gs.InvalidFile):
        folder.load_checkpoint(np.zeros(5))


def counters(**changed):
    return json.dumps(vars(Progress()) | changed)


ZEROS = {name: np.zeros_like(NET.flat) for name in ("weights", "velocity", "gradient", "best")}
WHOLE = {"format": CHECKPOINT_FORMAT, "progress": counters(), "sieve": json.dumps(SIEVE)}
LEARNING = SIEVE["learning"]
WRONG_SIEVES = [
    {}, {"more": 1}, SIEVE | {"looks_in": "1"}, SIEVE | {"looks_in": 1.5}, SIEVE | {"in_a_row": -1},
    SIEVE | {"learning": {}}, SIEVE | {"learning": None},
    SIEVE | {"learning": LEARNING | {"more": 1}},
    SIEVE | {"learning": LEARNING | {"agreement": "²"}},
    SIEVE | {"learning": LEARNING | {"agreement": float("nan")}},
]  # fmt: skip
WRONG_COUNTERS = [
    {"epoch": "1"}, {"epoch": None}, {"epoch": -1}, {"epoch": 1.5}, {"epoch": True},
    {"epoch": [1]}, {"more": 1}, {"updates": -3}, {"kept": 1}, {"best_epoch": 7},
    {"validations": 2}, {"nonfinite": 1}, {"stalls": 0.0}, {"best_accuracy": 2},
    {"best_accuracy": float("nan")}, {"best_accuracy": "²"}, {"best_loss": -1.0},
    {"best_loss": float("nan")}, {"seconds": -1.0}, {"seconds": float("inf")},
]  # fmt: skip


def one(value):
    changed = NET.flat.copy()
    changed[3] = value
    return changed


@pytest.mark.parametrize(
    ("arrays", "metadata", "names"),
    [
        (ZEROS, {"format": "another"}, "not a gradsieve-checkpoint-2"),
        (ZEROS, {"format": "gradsieve-checkpoint-1"}, "not a gradsieve-checkpoint-2"),
        (ZEROS, {"format": CHECKPOINT_FORMAT}, "JSON"),
        (ZEROS, WHOLE | {"progress": "{"}, "JSON"),
        (ZEROS, WHOLE | {"progress": "[]"}, "JSON object"),
        (ZEROS, WHOLE | {"progress": "{}"}, "counters"),
        *((ZEROS, WHOLE | {"progress": counters(**wrong)}, r"its \w+") for wrong in WRONG_COUNTERS),
        *((ZEROS, WHOLE | {"sieve": json.dumps(wrong)}, "its sieve") for wrong in WRONG_SIEVES),
        (ZEROS, WHOLE | {"sieve": "["}, "JSON"),
        *((ZEROS, WHOLE | {"seen": seen}, "gradients") for seen in ("²", "-1", "1.5", "")),
        (ZEROS, WHOLE | {"history": "0" * 64}, "history"),
        ({"weights": NET.flat}, WHOLE, "velocity"),
        *((ZEROS | {name: one(value)}, WHOLE, name)
          for name in ZEROS for value in (np.nan, np.inf, -np.inf)),
        (ZEROS | {"best": np.zeros(3, np.float32)}, WHOLE, "best"),
        (ZEROS | {"best": NET.flat.astype(np.float64)}, WHOLE, "best"),
    ],
)  # fmt: skip
def test_a_foreign_checkpoint_is_refused_by_name_and_kept(finished, arrays, metadata, names):
    (finished / "checkpoint.safetensors").write_bytes(tensor_bytes(arrays, metadata))
    before = everything(finished)
    with pytest.raises(gs.InvalidFile, match=names):
        gs.train(NET, TASK, PAPER, **SMALL, folder=finished)
    assert everything(finished) == before


def test_a_checkpoint_without_a_checksum_is_refused(finished):
    (finished / "checkpoint.safetensors").write_bytes(to_safetensors(ZEROS, WHOLE))
    with pytest.raises(gs.InvalidFile, match="checksum"):
        gs.train(NET, TASK, PAPER, **SMALL, folder=finished)


def test_a_changed_history_is_refused_and_kept(finished):
    path = finished / "history.jsonl"
    first, second = path.read_bytes().splitlines(keepends=True)
    for changed in (b"", first, second, first + second.replace(b'"kept": ', b'"kept": 1'),
                    first + first + second, second + first):  # fmt: skip
        path.write_bytes(changed)
        before = everything(finished)
        with pytest.raises(gs.InvalidFile, match=r"history\.jsonl: not the history"):
            gs.train(NET, TASK, PAPER, **SMALL, folder=finished)
        assert everything(finished) == before


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"learning_rate": 2e-3}, "learning_rate"),
        ({"seed": 1}, "seed"),
        ({"sieve": gs.Sieve()}, "sieve"),
        ({"epochs": 5}, "epochs"),
        ({"sizes": (30, 20, 21)}, "sizes"),
        ({"net": gs.SRN.random(6, 7, 4)}, "hidden"),
        ({"net": gs.SRN.random(6, 6, 4, seed=9)}, "other initial weights"),
        ({"net": NET.astype(np.float64)}, "dtype"),
        ({"task": gs.tasks.temporal_order(length=21)}, "length"),
        ({"task": gs.tasks.temporal_order(length=20, convention="pascanu")}, "convention"),
    ],
)
def test_the_folder_of_another_run_is_refused_by_name_and_kept(finished, changed, names):
    before = everything(finished)
    arguments = {"net": NET, "task": TASK, "recipe": PAPER, **SMALL} | changed
    with pytest.raises(gs.InvalidFile, match=names):
        gs.train(**arguments, folder=finished)
    assert everything(finished) == before


@pytest.mark.parametrize("name", [name for name in FILES if name not in ("run.json",)])
def test_a_folder_that_lost_its_run_json_is_refused_and_kept(finished, name):
    for other in FILES:
        if other != name:
            (finished / other).unlink()
    before = everything(finished)
    if name == "initial.safetensors":  # what a kill in the first moments leaves
        assert gs.train(NET, TASK, PAPER, **SMALL, folder=finished).updates == 6
        return
    with pytest.raises(gs.InvalidFile, match=name):
        gs.train(NET, TASK, PAPER, **SMALL, folder=finished)
    assert everything(finished) == before


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"{}"])
def test_a_damaged_run_json_is_refused_and_kept(finished, content):
    (finished / "run.json").write_bytes(content)
    before = everything(finished)
    with pytest.raises(gs.InvalidFile):
        gs.train(NET, TASK, PAPER, **SMALL, folder=finished)
    assert everything(finished) == before


def test_torn_and_foreign_lines_of_a_history_are_passed_over(tmp_path):
    folder = RunFolder(tmp_path)
    assert folder.read_history() == []
    for epoch in (1, 2, 3):
        folder.append_history({"epoch": epoch})
    with (tmp_path / "history.jsonl").open("ab") as file:
        file.write(
            b'[1]\n{"epoch": "x"}\n\xff\xfe\n{"other": 1}\n' + b"[" * 100_000 + b'\n{"epoch": 4'
        )
    assert [record["epoch"] for record in folder.read_history()] == [1, 2, 3]
    assert folder.rewind_history(2) == [{"epoch": 1}, {"epoch": 2}]
    assert (tmp_path / "history.jsonl").read_text() == '{"epoch": 1}\n{"epoch": 2}\n'


def test_a_history_that_is_a_folder_is_an_error_that_names_it(tmp_path):
    (tmp_path / "history.jsonl").mkdir()
    folder = RunFolder(tmp_path)
    with pytest.raises(gs.InvalidFile, match=r"history\.jsonl"):
        folder.read_history()
    with pytest.raises(gs.GradsieveError, match="cannot be written"):
        folder.append_history({"epoch": 1})


def test_the_folder_says_what_was_asked_and_with_what(finished):
    asked = json.loads((finished / "run.json").read_text())
    assert asked["task"] == "temporal_order"
    assert (asked["length"], asked["hidden"], asked["chance"]) == (20, 6, 0.25)
    assert asked["versions"]["gradsieve"] == gs.__version__
    assert sorted(path.name for path in finished.iterdir()) == sorted(FILES)
    assert np.array_equal(gs.SRN.load(finished / "initial.safetensors").flat, NET.flat)
