"""Kills, Ctrl-C and full disks, for real: what a run leaves, and what it becomes afterwards."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from run_in_child import JOB, RECIPE, initial_network
from safetensors import safe_open
from safetensors.numpy import load_file

import gradsieve as gs
from gradsieve.training import run_one
from gradsieve.training.record import FILES

CHILD = Path(__file__).with_name("run_in_child.py")
KILLS = 20


def start(folder, *arguments):
    command = [sys.executable, str(CHILD), str(folder), *map(str, arguments)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def read_epochs(child, count):
    """The next lines that the child says, at most so many; fewer when it has ended."""
    return [line for line in (child.stdout.readline().strip() for _ in range(count)) if line]


def finish(folder, *arguments):
    child = start(folder, *arguments)
    said = child.communicate()[0].split("\n")
    assert child.returncode == 0
    return said[-2]


def outcome(folder):
    """Everything that a run leaves, but for the seconds that it took."""
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    result = json.loads((folder / "result.json").read_text())
    for record in [*history, result]:
        del record["seconds"]
    arrays = load_file(folder / "checkpoint.safetensors")
    with safe_open(folder / "checkpoint.safetensors", framework="np") as file:
        sieve = file.metadata()["sieve"]
    return {
        "sieve": sieve,
        "history": history,
        "result": result,
        "network": (folder / "network.safetensors").read_bytes(),
        "checkpoint": {name: array.tobytes() for name, array in arrays.items()},
        "files": sorted(os.listdir(folder)),
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run = run_one(initial_network(), JOB, folder)
    assert 0 < run.kept < 1, "the run must have skips, or it would test less"
    assert run.stalls > 0
    assert sorted(os.listdir(folder)) == sorted(FILES)
    return outcome(folder)


@pytest.mark.parametrize("checkpoint_seconds", [0, 0.02])
def test_a_run_killed_at_many_moments_is_bit_for_bit_the_undisturbed_one(
    tmp_path, undisturbed, checkpoint_seconds
):
    moments = random.Random(checkpoint_seconds)
    kills, folder = 0, tmp_path / "run-0"
    while kills < KILLS:
        child = start(folder, checkpoint_seconds)
        read_epochs(child, moments.randint(0, 4))
        time.sleep(moments.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        if child.returncode == 0:  # on a busy machine it may end before it is killed: once more
            assert outcome(folder) == undisturbed
            folder = tmp_path / f"run-{kills}"
        else:
            assert child.returncode == -signal.SIGKILL
            kills += 1
    assert finish(folder, checkpoint_seconds) == "epochs"
    assert outcome(folder) == undisturbed


def test_ctrl_c_ends_with_what_it_has_and_the_run_goes_on_from_there(tmp_path, undisturbed):
    interruptions = 0
    for count in (1, 12, 30):
        child = start(tmp_path, 1000)
        read_epochs(child, count)
        child.send_signal(signal.SIGINT)
        ending = child.communicate()[0].split("\n")[-2]
        assert child.returncode == 0
        if ending == "epochs":  # on a busy machine it may end before it hears
            break
        assert ending == "interrupted"
        interruptions += 1
        assert not (tmp_path / "result.json").exists()
        history = (tmp_path / "history.jsonl").read_text().splitlines()
        epochs = [json.loads(line)["epoch"] for line in history]
        assert epochs == list(range(1, len(epochs) + 1))
        assert len(epochs) >= count
    assert interruptions >= 1
    assert finish(tmp_path) == "epochs"
    assert outcome(tmp_path) == undisturbed


@pytest.mark.parametrize("policy", ["skip", "hold", "auto"])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"rms_decay": 0.99, "rms_bound": 1.5, "cool_down": 0.5},
        {"rms_decay": 0.99, "roll_back": 1.01},
        {"roll_back": 1.01},
        {"stages": ((0.5, 0.175), (0.7, 0.225)), "rate_power": 1.0, "batch_power": 1.0},
        {"stages": ((0.5, 0.175), (0.7, 0.225)), "advance_at": 0.3, "warm_up": 0.2},
    ],
)
def test_a_run_interrupted_after_each_of_its_epochs_is_the_undisturbed_one(tmp_path, more, policy):
    """Epochs so short that some keep no update, and that a row of skips reaches into the next."""
    sieve = gs.Sieve(policy, (-0.2, 0.2), stall_after=4, every=1 if policy == "skip" else 4)
    recipe = RECIPE.replaced(sieve=sieve, iterations=3, epochs=40, probe_every=1, **more)
    job = dataclasses.replace(JOB, recipe=recipe)
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    run = run_one(initial_network(), job, whole)
    if policy == "skip":
        assert run.stalls > 0
        assert min(record["kept"] for record in run.history) == 0
    else:
        assert any(record["reasons"].get("NOT_LOOKED_AT") for record in run.history)
        assert policy == "auto" or run.corrected > 0
    assert any(record.get("rolled_back") for record in run.history) == ("roll_back" in more)
    epochs = []

    def interrupt_the_second(record):
        epochs.append(record["epoch"])
        if len(epochs) == 2:
            raise KeyboardInterrupt

    lives = 0
    while not (pieces / "result.json").exists():
        epochs.clear()
        run_one(initial_network(), job, pieces, on_record=interrupt_the_second)
        lives += 1
    assert lives == 40
    assert outcome(pieces) == outcome(whole)


def test_an_interrupted_run_gives_back_the_network_and_history_of_its_checkpoint(tmp_path):
    """Interrupted just after a network that was the best, which no checkpoint holds yet."""
    seen = []

    def interrupt(record):
        better = all(record["accuracy"] > other["accuracy"] for other in seen)
        seen.append(record)
        if better and len(seen) > 5:
            raise KeyboardInterrupt

    run = run_one(initial_network(), JOB, tmp_path, on_record=interrupt)
    assert run.stopped == "interrupted"
    assert run.history == seen[:-1]
    assert run.updates == len(run.history) * RECIPE.budget.iterations
    best = max(run.history, key=lambda record: (record["accuracy"], -record["validation_loss"]))
    assert run.best_epoch == best["epoch"]
    assert run.validation_accuracy == best["accuracy"]
    arrays = load_file(tmp_path / "checkpoint.safetensors")
    assert np.array_equal(arrays["weights"], run.final.flat)
    assert np.array_equal(arrays["best"], run.network.flat)


def test_an_interruption_before_the_first_epoch_gives_the_initial_network():
    def interrupt(record):
        raise KeyboardInterrupt

    run = run_one(initial_network(), JOB, on_record=interrupt)
    assert np.array_equal(run.network.flat, initial_network().flat)
    assert (run.stopped, run.history, run.updates) == ("interrupted", [], 0)
    json.loads(json.dumps(run.result(), allow_nan=False))


@pytest.mark.parametrize("largest_file", [100, 1500, 8000])
def test_a_full_disk_is_said_and_loses_nothing(tmp_path, undisturbed, largest_file):
    """Room for not even run.json; for run.json but no weights; for all but the whole history."""
    child = start(tmp_path, 0, largest_file)
    said = child.communicate()[0].split("\n")
    assert child.returncode == 2
    assert "cannot be written" in said[-2]
    assert str(tmp_path) in said[-2]
    assert not [name for name in os.listdir(tmp_path) if name not in FILES]
    assert finish(tmp_path) == "epochs"
    assert outcome(tmp_path) == undisturbed


def test_a_finished_run_started_again_is_the_same_run(tmp_path, undisturbed):
    for _ in range(2):
        assert finish(tmp_path) == "epochs"
        assert outcome(tmp_path) == undisturbed
