"""Run folders of any kind, written as training writes them: also ones that training rarely makes.

They are input for the reader, not results: real runs are in test_browser.py.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAGS = [0, 1, 2, 4, 8, 16, 32, 64, 99]


def settings(label: str = "full", network: int = 0, **changed: Any) -> dict[str, Any]:
    sieve = None
    if label not in ("off", "clip"):
        sieve = {"q_range": [-1, 1], "max_change": None, "estimator": "full", "policy": "skip"}
    return {
        "format": "gradsieve-run-1",
        "task": "temporal_order",
        "length": 100,
        "convention": "author",
        "inputs": 6,
        "outputs": 4,
        "output": "softmax",
        "chance": 0.25,
        "hidden": 100,
        "variance": 0.01,
        "seed": 0,
        "network": network,
        "label": label,
        "sieve": sieve,
        "learning_rate": 1e-05,
        "momentum": 0.9,
        "clip": None,
        "batch": 10,
        "epochs": 60,
        "iterations": 50,
        "engine": "native",
        "dtype": "float32",
        "versions": {"gradsieve": "0.1.0", "numpy": "2.3.5", "python": "3.11.2"},
        "created": "2026-01-01T00:00:00+00:00",
        **changed,
    }


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
        "Q": drift,
        "Q_min": drift - abs(noise.gauss(0.4, 0.1)),
        "Q_max": drift + abs(noise.gauss(0.5, 0.1)),
        "dS": -1e-12 * noise.random(),
        "relative": noise.gauss(0, 0.01),
        "kept": 1 - skipped / 50,
        "reasons": {"in range": 50 - skipped, "vanished, would vanish further": skipped}
        if sieved
        else {"no sieve": 50},
        "stalls": 1 if sieved and epoch % 25 == 0 else 0,
        "nonfinite": 1 if label == "off" and epoch == 33 else 0,
        "gradient_norm": 10 ** noise.gauss(0.5 - progress, 0.3),
        "probe": {
            "lags": LAGS,
            "log10_norm": [-1.2 - drift * lag / 99 + noise.gauss(0, 0.05) for lag in LAGS],
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
    (folder / "run.json").write_text(json.dumps(settings(label, network) | dict(changed or {})))
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
