"""Run folders of any kind, written as training writes them: also ones that training rarely makes.

They are input for the reader, not results: real runs are in test_browser.py.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gradsieve import recipes
from gradsieve.recipe import PARTS, Recipe
from gradsieve.report.runs import RecordedRun
from gradsieve.training.older import upgraded

LAGS = [0, 1, 2, 4, 8, 16, 32, 64, 99]


def settings(label: str = "full", network: int = 0, /, **changed: Any) -> dict[str, Any]:
    """A run.json of this version; a setting of the recipe is changed there, the rest beside it."""
    recipe = recipes.paper("off" if label in ("off", "clip") else "full")
    known = {name: changed.pop(name) for name in list(changed) if name in {*recipe.flat(), *PARTS}}
    return {
        "format": "gradsieve-run-2",
        "task": "temporal_order",
        "length": 100,
        "convention": "author",
        "inputs": 6,
        "outputs": 4,
        "output": "softmax",
        "chance": 0.25,
        "hidden": 100,
        "seed": 0,
        "network": network,
        "drawn_by": network,
        "label": label,
        "engine": "native",
        "dtype": "float32",
        "recipe": recipe.replaced(**({"epochs": 60} | known)).as_dict(),
        "versions": {"gradsieve": "0.2.0", "numpy": "2.3.5", "python": "3.11.2"},
        **changed,
    }


def older_settings(label: str = "full", network: int = 0, /, **changed: Any) -> dict[str, Any]:
    """The same as version 0.1 wrote it: one flat list."""
    sieve = None
    if label not in ("off", "clip"):
        sieve = {"q_range": [-1, 1], "max_change": None, "estimator": "full", "policy": "skip"}
    said = settings(label, network)
    return {
        **{name: said[name] for name in said if name not in ("recipe", "drawn_by")},
        "format": "gradsieve-run-1",
        "variance": 0.01,
        "sieve": sieve,
        "learning_rate": 1e-05,
        "momentum": 0.9,
        "clip": None,
        "batch": 10,
        "epochs": 60,
        "iterations": 50,
        "created": "2026-01-01T00:00:00+00:00",
        **changed,
    }


def recorded(
    stored: Mapping[str, Any],
    epochs: Iterable[Mapping[str, Any]] = (),
    result: Mapping[str, Any] | None = None,
    damaged_lines: int = 0,
    folder: str = "x",
) -> RecordedRun:
    """A run as the reader makes it of a run.json of either version."""
    about = upgraded(dict(stored))
    recipe = Recipe.from_dict(about.pop("recipe"))
    return RecordedRun(Path(folder), about, recipe, tuple(epochs), result, damaged_lines)


def epoch_record(epoch: int, label: str, network: int, epochs: int = 60) -> dict[str, Any]:
    noise = random.Random(f"{label} {network} {epoch}")
    progress = epoch / epochs
    sieved = label not in ("off", "clip")
    drift = (0.6 if sieved else 5.0) * progress + noise.gauss(0, 0.15)
    skipped = noise.randrange(8) if sieved else 0
    speed = 3 + network + (3 if sieved else 0)
    accuracy = 0.25 + 0.75 / (1 + math.exp(-speed * (2 * progress - 1.2))) * (0.6 + 0.05 * network)
    predicted = noise.gauss(0, 0.02) * math.exp(noise.gauss(0, 1))
    return {
        "epoch": epoch,
        "updates": 50 * epoch,
        "loss": 1.386 - 0.9 * progress + noise.gauss(0, 0.05),
        "accuracy": min(accuracy, 0.999),
        "validation_loss": 1.386 - 0.85 * progress,
        "slow_Q": drift,
        "Q": drift,
        "Q_min": drift - abs(noise.gauss(0.4, 0.1)),
        "Q_max": drift + abs(noise.gauss(0.5, 0.1)),
        "dS": -1e-12 * noise.random(),
        "relative": noise.gauss(0, 0.01),
        "kept": 1 - skipped / 50,
        "corrected": 0.0,
        "reasons": {"IN_RANGE": 50 - skipped, "VANISHED_FALLS": skipped}
        if sieved
        else {"NO_SIEVE": 50},
        "stalls": 1 if sieved and epoch % 25 == 0 else 0,
        "nonfinite": 1 if label == "off" and epoch == 33 else 0,
        "gradient_norm": 10 ** noise.gauss(0.5 - progress, 0.3),
        "probe": {
            "lags": LAGS,
            "log10_norm": [-1.2 - drift * lag / 99 + noise.gauss(0, 0.05) for lag in LAGS],
            "slow_Q": [drift * lag / 99 for lag in LAGS],
            "activation_mean": 0.2 + 0.4 * progress,
            "activation_median": 0.15 + 0.45 * progress,
            "saturated": 0.02 + 0.3 * progress**2,
            "predicted": predicted,
            "measured": predicted * (0.9 + noise.gauss(0, 0.4)),
        }
        if epoch % 2 == 1
        else None,
        "seconds": 0.04 * epoch,
    }


def write_run(
    folder: Path,
    label: str = "full",
    network: int = 0,
    epochs: int = 60,
    finished: bool = True,
    changed: Mapping[str, Any] | None = None,
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(settings(label, network, **dict(changed or {}))))
    records = [epoch_record(epoch, label, network, epochs) for epoch in range(1, epochs + 1)]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "history.jsonl").write_text(lines)
    if finished:
        best = max(records, key=lambda record: record["accuracy"])
        result = {
            "test_accuracy": best["accuracy"] - 0.001,
            "validation_accuracy": best["accuracy"],
            "best_epoch": best["epoch"],
            "epochs": epochs,
            "updates": 50 * epochs,
            "kept": sum(record["kept"] for record in records) / epochs,
            "stalls": sum(record["stalls"] for record in records),
            "nonfinite": sum(record["nonfinite"] for record in records),
            "seconds": 0.04 * epochs,
            "stopped": "epochs",
        }
        (folder / "result.json").write_text(json.dumps(result))
    return folder


def write_study(
    folder: Path, networks: int = 5, labels: tuple[str, ...] = ("off", "full"), epochs: int = 60
) -> Path:
    for label in labels:
        for network in range(networks):
            write_run(folder / f"{label}-{network}", label, network, epochs)
    return folder
