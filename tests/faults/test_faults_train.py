"""Training that is killed, starved of disk, robbed of its folder or started twice."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from killing import finished, killed, leftovers, share, started

import gradsieve as gs

PROGRAM = """
import sys
import gradsieve as gs
from gradsieve.training import run

run.CHECKPOINT_SECONDS = 0.02
RECIPES = {
    "recommended": gs.recipes.recommended(),
    "off": gs.recipes.paper("off"),
    "frozen": gs.recipes.paper("frozen"),
    "full": gs.recipes.paper("full"),
    "roll back": gs.recipes.recommended().replaced(roll_back=1.05),
    "steer": gs.recipes.recommended().replaced(policy="steer"),
    "select": gs.recipes.paper("full").replaced(policy="select", momentum=0.5),
}
name, folder = sys.argv[1:3]
task = gs.tasks.temporal_order(length=20)
net = gs.SRN.random(task.inputs, 8, task.outputs, output=task.output, seed=1)
try:
    gs.train(net, task, RECIPES[name], epochs=60, iterations=30, validate_every=1,
             sizes=(100, 50, 50), folder=folder)
except gs.GradsieveError as error:
    sys.exit(f"gradsieve: {error}")
"""
AS_NOBODY = """
import os, pwd, runpy, sys

program, recipe, warm, folder = sys.argv[1:]
nobody = pwd.getpwnam("nobody")
sys.argv = [program, recipe, warm]  # loads what nobody may not read, such as a Python of root's own
runpy.run_path(program)
os.setgroups([])
os.setgid(nobody.pw_gid)
os.setuid(nobody.pw_uid)
sys.argv = [program, recipe, folder]
runpy.run_path(program)
"""
RECIPES = ["recommended", "off", "frozen", "full", "roll back", "steer", "select"]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def told(folder: Path) -> tuple[object, ...]:
    """Everything that a run has written, but for how long it took."""
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    result = json.loads((folder / "result.json").read_text())
    for record in (result, *history):
        record.pop("seconds")
    epochs = [record["epoch"] for record in history]
    assert epochs == sorted(set(epochs)), f"doubled records: {epochs}"
    assert not leftovers(folder)
    names = sorted(path.name for path in folder.iterdir())
    return history, result, gs.SRN.load(folder / "network.safetensors").flat.tobytes(), names


@pytest.mark.parametrize("recipe", RECIPES)
def test_kills_change_nothing(tmp_path: Path, program: Path, recipe: str) -> None:
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    began = time.monotonic()
    assert finished([program, recipe, calm]) == (0, "")
    longest = time.monotonic() - began
    assert killed([program, recipe, wild], share(0.1), RECIPES.index(recipe), longest) > 0
    assert finished([program, recipe, wild]) == (0, "")
    assert told(wild) == told(calm)


@pytest.fixture
def calm(tmp_path: Path, program: Path) -> tuple[object, ...]:
    assert finished([program, "recommended", tmp_path / "calm"]) == (0, "")
    return told(tmp_path / "calm")


def test_a_full_disk_is_said_and_the_run_goes_on_once_there_is_room(
    tmp_path: Path, program: Path, calm: tuple[object, ...]
) -> None:
    folder, command = tmp_path / "full", [program, "recommended", tmp_path / "full"]
    for limit in (0, 500, 2000, 5000, 20_000):

        def small(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        code, said = finished(command, preexec_fn=small)
        assert (code, said) == (0, "") or (code == 1 and said.startswith("gradsieve: ")), said
        assert "Traceback" not in said
        assert not folder.exists() or not leftovers(folder)
    assert finished(command) == (0, "")
    assert told(folder) == calm


def test_a_disk_that_is_really_full(
    tmp_path: Path, program: Path, calm: tuple[object, ...]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small file system")
    try:
        filler, command = disk / "filler", [program, "recommended", disk / "run"]
        for room in (0, 4, 16, 48):  # kB
            filler.write_bytes(b"")
            with filler.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    file.truncate(max(0, file.tell() - 1024 * room))
            code, said = finished(command)
            assert code == 0 or (code == 1 and said.startswith("gradsieve: ")), said
        filler.unlink()
        assert finished(command) == (0, "")
        assert told(disk / "run") == calm
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_a_folder_that_may_not_be_written_to_is_said(tmp_path: Path, program: Path) -> None:
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == "root" and path.stat().st_mode & 0o001 == 0:
            path.chmod(path.stat().st_mode | 0o011)
    folder, somebody_else = tmp_path / "run", tmp_path / "somebody_else.py"
    somebody_else.write_text(AS_NOBODY)
    assert finished([program, "off", folder]) == (0, "")
    (folder / "result.json").unlink()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for where in (folder, tmp_path / "new"):
        code, said = finished([somebody_else, program, "off", tmp_path / "warm", where])
        assert code == 1
        assert said.startswith(f"gradsieve: {where}")
        assert said.count("\n") == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_that_vanishes_is_said_and_made_again(
    tmp_path: Path, program: Path, calm: tuple[object, ...]
) -> None:
    folder, command = tmp_path / "run", [program, "recommended", tmp_path / "run"]
    running = started(command)
    until = time.monotonic() + 60
    while not (folder / "checkpoint.safetensors").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    folder.rename(tmp_path / "away")
    shutil.rmtree(tmp_path / "away", ignore_errors=True)
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 0 or said.startswith("gradsieve: "), said
    shutil.rmtree(folder, ignore_errors=True)
    assert finished(command) == (0, "")
    assert told(folder) == calm


def test_two_at_once_do_not_write_into_one_folder(
    tmp_path: Path, program: Path, calm: tuple[object, ...]
) -> None:
    for turn in range(share(0.05)):
        command = [program, "recommended", tmp_path / str(turn)]
        both = [started(command), started(command), started(command)]
        for one in both:
            said, _ = one.communicate(timeout=120)
            assert one.returncode == 0 or "another process is training there" in said, said
        assert told(tmp_path / str(turn)) == calm
