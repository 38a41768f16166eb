"""A PyTorch training as a run folder, which `gradsieve report` and `gradsieve watch` read.

The folder holds run.json, history.jsonl with one record a reading and, once it is closed,
result.json. A training that goes on later goes on with the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from gradsieve.errors import InvalidFile
from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.watching.reading import LayerLook, Reading
from gradsieve.training.corrections import finite
from gradsieve.training.older import FORMAT
from gradsieve.training.record import RunFolder, versions

PYTORCH = "PyTorch"  # the trainer's name in run.json


class ToRunFolder:
    """Writes readings as the history of a run.

    Args:
        folder: a new one, or that of the same training before it was interrupted.
        model: described in the report by its class and its number of parameters.
        optimizer: described by its settings and, of a `gst.Sieve`, those of the sieve.
        task: runs on one task are compared with each other.
        label: the name of this way of training; by default the sieve's policy, or "off".
        seed: runs that differ in nothing else are one line of a comparison.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        model: nn.Module,
        optimizer: Optimizer,
        task: str = "training",
        label: str | None = None,
        seed: int = 0,
    ) -> None:
        self.folder = RunFolder(Path(folder))
        self._sieve = optimizer if isinstance(optimizer, Sieve) else None
        about = _about(model, optimizer) | {"task": task, "seed": seed}
        if label is not None:
            about["label"] = label
        known = self.folder.read_json("run.json")
        if known is not None and known.get("trained_by") != PYTORCH:
            raise InvalidFile(f"{folder}: holds another run; choose another folder")
        if known is None:
            self.folder.refuse_remains()
        self.folder.path.mkdir(parents=True, exist_ok=True)
        self.folder.write_json("run.json", about)
        records = self.folder.read_history()
        self._epoch = max((record["epoch"] for record in records), default=0)
        self._before = max((int(record.get("updates") or 0) for record in records), default=0)
        self._counts: dict[str, float] = {}
        self._reasons: dict[str, int] = {}
        (self.folder / "result.json").unlink(missing_ok=True)

    def __call__(self, step: int, reading: Reading) -> None:
        self._epoch += 1
        record = {"epoch": self._epoch, "updates": self._before + step + 1, **_reach(reading)}
        for name in ("loss", "accuracy", "gradient_norm"):
            if name in reading:
                record[name] = finite(reading[name])
        record |= self._of_sieve()
        record["nonfinite"] = self._since("not_finite", reading)
        record["layers"] = {
            one.name: {name: finite(value) for name, value in one.values().items()}
            for one in reading.layers
        }
        record["judgement"] = str(reading.judgement)
        self.folder.append_history(record)

    def _of_sieve(self) -> dict[str, Any]:
        """The outcomes of the steps since the last record."""
        if self._sieve is None:
            return {}
        counts = self._sieve.counts
        steps, kept = (self._since(name, counts) for name in ("steps", "kept"))
        reasons = {
            name: count - self._reasons.get(name, 0) for name, count in self._sieve.reasons.items()
        }
        self._reasons = dict(self._sieve.reasons)
        return {
            "kept": kept / steps if steps else None,
            "stalls": self._since("stalls", counts),
            "reasons": {name: count for name, count in reasons.items() if count},
        }

    def _since(self, name: str, reading: Mapping[str, float]) -> float:
        """By how much a count has grown since the last record."""
        count = reading.get(name, 0.0)
        grown = count - self._counts.get(name, 0.0)
        self._counts[name] = count
        return grown

    def close(self) -> None:
        """Say that the training has ended."""
        self.folder.write_json("result.json", {"stopped": "closed"})


def _reach(reading: Reading) -> dict[str, Any]:
    """Q, slow Q and the gradient against lag of the layer that reaches least."""
    least = max(reading.layers, key=_distance)
    chosen = [0, *least.slow_curve]
    return {
        "Q": finite(least.Q),
        "slow_Q": finite(least.seen.slow_Q),
        "probe": {
            "lags": chosen,
            "log10_norm": [finite(least.curve[lag]) for lag in chosen],
            "slow_Q": [0.0, *map(finite, least.slow_curve.values())],
            "saturated": max(least.seen.saturated.values(), default=None),
        },
    }


def _distance(one: LayerLook) -> float:
    slow = one.seen.slow_Q
    return -1.0 if slow != slow else abs(slow)


def _about(model: nn.Module, optimizer: Optimizer) -> dict[str, Any]:
    """The description of the training, for run.json."""
    sieve = optimizer.sieve if isinstance(optimizer, Sieve) else None
    inner = optimizer.optimizer if isinstance(optimizer, Sieve) else optimizer
    settings = {
        name: value if isinstance(value, int | float | str | None) else str(value)
        for name, value in inner.defaults.items()
    }
    return {
        "format": FORMAT,
        "trained_by": PYTORCH,
        "model": type(model).__name__,
        "parameters": sum(one.numel() for one in model.parameters()),
        "optimizer": {"name": type(inner).__name__, **settings},
        "versions": {**versions(), "torch": torch.__version__},
        "recipe": {"sieve": None if sieve is None else sieve.as_dict()},
    }
