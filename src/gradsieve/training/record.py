"""The folder of a run: its settings, history, checkpoint and result, whole after any crash.

    run.json                the task, the recipe and the versions
    history.jsonl           one JSON object per validation
    checkpoint.safetensors  weights, velocity, last gradient, best weights and counters at the last
                            checkpoint; the mean square of the gradients, where these are scaled by
                            it; the weights of a roll-back, where the run has one
    initial.safetensors     the network before training
    network.safetensors     the best network by validation
    result.json             the outcome, once there is one

Everything is JSON or safetensors: a file from a stranger can be read, never run.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve import kernel
from gradsieve.errors import GradsieveError, InvalidFile
from gradsieve.files import (
    open_file,
    parse_object,
    read_file,
    remove_leftovers,
    write_atomically,
)
from gradsieve.network import Array
from gradsieve.tensors import read_tensors, tensor_bytes
from gradsieve.training.roll_back import Refuge
from gradsieve.version import __version__

CHECKPOINT_FORMAT = "gradsieve-checkpoint-2"
FILES = (
    "run.json",
    "history.jsonl",
    "checkpoint.safetensors",
    "initial.safetensors",
    "network.safetensors",
    "result.json",
)
ARRAYS = ("weights", "velocity", "gradient", "best")
MEAN_SQUARE = "mean_square"
REFUGE = "refuge_"  # how the names of its arrays begin


@dataclass(frozen=True)
class Checkpoint:
    """A run at the end of an epoch: all that the next epoch depends on."""

    weights: Array
    velocity: Array
    gradient: Array  # of the last minibatch, with which the next one's is compared
    best: Array
    progress: dict[str, Any]  # counters: plain JSON
    sieve: dict[str, Any]  # the sieve's memory: plain JSON
    mean_square: Array | None = None  # of the gradients, and how many: see `MeanSquare`
    seen: int = 0
    refuge: Refuge | None = None  # the target of a roll-back: see `RollBack`
    history: str = ""  # checksum of the history up to here


def versions() -> dict[str, str]:
    """The versions and the instruction set that compute a result."""
    return {
        "gradsieve": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform}-{platform.machine()}",
        "isa": kernel.isa(),
    }


class RunFolder:
    """Reads and writes one run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._history = hashlib.sha256()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def refuse_remains(self) -> None:
        """Refuse a folder with files of a run but no run.json: their run is not known."""
        remains = [name for name in FILES[1:] if name != "initial.safetensors"]
        found = [name for name in remains if (self / name).exists()]
        if found:
            raise InvalidFile(
                f"{self.path}: holds {', '.join(found)} of a run, but no run.json; choose another "
                "output folder, or remove this one"
            )

    def remove_leftovers(self) -> None:
        """Remove half-written files of a run that was killed."""
        for name in FILES:
            remove_leftovers(self / name)

    def write_json(self, name: str, value: dict[str, Any]) -> None:
        write_atomically(self / name, json.dumps(value, indent=1) + "\n")

    def read_json(self, name: str) -> dict[str, Any] | None:
        """The file's object, or None if there is no such file."""
        path = self / name
        try:
            return parse_object(path, read_file(path))
        except FileNotFoundError:
            return None

    def append_history(self, record: dict[str, Any]) -> None:
        line = _line(record)
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with open_file(self / "history.jsonl", flags) as file:
                file.write(line)
        except OSError as error:
            raise GradsieveError(
                f"{self / 'history.jsonl'}: cannot be written ({error.strerror})"
            ) from error
        self._history.update(line)

    def read_history(self) -> list[dict[str, Any]]:
        """All whole records; a torn or foreign line is passed over."""
        path = self / "history.jsonl"
        try:
            lines = read_file(path).splitlines()
        except FileNotFoundError:
            return []
        records = []
        for line in lines:
            try:
                record = parse_object(path, line)
            except InvalidFile:
                continue
            if type(record.get("epoch")) is int:
                records.append(record)
        return records

    def rewind_history(self, epoch: int, checksum: str | None = None) -> list[dict[str, Any]]:
        """Drop the records after the checkpoint, which the run then writes anew."""
        records = [record for record in self.read_history() if record["epoch"] <= epoch]
        lines = b"".join(_line(record) for record in records)
        history = hashlib.sha256(lines)
        if checksum is not None and history.hexdigest() != checksum:
            raise InvalidFile(
                f"{self / 'history.jsonl'}: not the history that the checkpoint goes on from; it "
                "is damaged, so choose another output folder, or remove this one"
            )
        write_atomically(self / "history.jsonl", lines)
        self._history = history
        return records

    def history_checksum(self) -> str:
        return self._history.hexdigest()

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        arrays = {name: getattr(checkpoint, name) for name in ARRAYS}
        metadata = {
            "format": CHECKPOINT_FORMAT,
            "progress": json.dumps(checkpoint.progress),
            "history": checkpoint.history,
            "sieve": json.dumps(checkpoint.sieve),
        }
        if checkpoint.mean_square is not None:
            arrays[MEAN_SQUARE] = checkpoint.mean_square
            metadata["seen"] = str(checkpoint.seen)
        if checkpoint.refuge is not None:
            refuge = asdict(checkpoint.refuge)
            held = {name: refuge.pop(name) for name in ("weights", MEAN_SQUARE)}
            arrays |= {REFUGE + name: array for name, array in held.items() if array is not None}
            metadata["refuge"] = json.dumps(refuge)
        self._sync_history()
        write_atomically(self / "checkpoint.safetensors", tensor_bytes(arrays, metadata))

    def _sync_history(self) -> None:
        """A loss of power must not leave a checkpoint whose history is lost."""
        try:
            with open_file(self / "history.jsonl", os.O_WRONLY | os.O_APPEND) as file:
                os.fsync(file.fileno())
        except FileNotFoundError:
            pass  # nothing was validated yet
        except OSError as error:
            raise GradsieveError(
                f"{self / 'history.jsonl'}: cannot be written ({error.strerror})"
            ) from error

    def load_checkpoint(
        self, like: Array, scaled: bool = False, rolls_back: bool = False
    ) -> Checkpoint | None:
        """The last checkpoint, or None if there is none; it must fit vectors of this size."""
        path = self / "checkpoint.safetensors"
        if not path.exists():
            return None
        scaling = (MEAN_SQUARE,) if scaled else ()
        held = tuple(REFUGE + name for name in ("weights", *scaling)) if rolls_back else ()
        names = (*ARRAYS, *scaling, *held)
        arrays, metadata = read_tensors(path, names, CHECKPOINT_FORMAT, "checkpoint")
        for name, array in arrays.items():
            square = name.endswith(MEAN_SQUARE)
            dtype = np.dtype(float) if square else like.dtype
            if array.shape != like.shape or array.dtype != dtype:
                raise InvalidFile(
                    f"{path}: {name} is {array.dtype}{array.shape}, but the network has weights "
                    f"for {dtype}{like.shape}"
                )
            if not ((array >= 0) if square else np.isfinite(array)).all():
                raise InvalidFile(f"{path}: {name} holds values that no run can have")
        refuge = None
        if rolls_back:
            weights, mean_square = (
                arrays.pop(REFUGE + name, None) for name in ("weights", MEAN_SQUARE)
            )
            told = parse_object(path, metadata.get("refuge"))
            refuge = _refuge(path, weights, mean_square, told)
        progress = parse_object(path, metadata.get("progress"))
        seen = metadata.get("seen", "0")
        if not (seen.isascii() and seen.isdigit() and len(seen) < 20):
            raise InvalidFile(f"{path}: it has seen {seen[:60]!r} gradients; that must be a number")
        history = metadata.get("history", "")
        sieve = parse_object(path, metadata.get("sieve"))
        return Checkpoint(
            **arrays,
            progress=progress,
            sieve=sieve,
            seen=int(seen),
            refuge=refuge,
            history=history,
        )


def _line(record: dict[str, Any]) -> bytes:
    """A line of a history: the same bytes again, once it was read."""
    return (json.dumps(record) + "\n").encode()


def _refuge(path: Path, weights: Any, mean_square: Any, told: dict[str, Any]) -> Refuge:
    """The refuge that a checkpoint holds."""
    kinds = {"seen": (int,), "loss": (int, float), "stage": (int, type(None)), "share": (float,)}
    typed = set(told) == set(kinds) and all(type(told[name]) in kinds[name] for name in kinds)
    if not (
        typed
        and told["seen"] >= 0
        and not math.isnan(told["loss"])
        and (told["stage"] is None or told["stage"] > 0)
        and 0 < told["share"] <= 1
    ):
        raise InvalidFile(
            f"{path}: its refuge is {str(told)[:200]}; it must have {', '.join(kinds)} of a run"
        )
    return Refuge(weights, mean_square, **told)
