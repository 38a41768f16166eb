"""Figure 2 of the paper: the inside of one network during training, without and with the sieve."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.methods import settings_of, stepper_of
from gradsieve.training.run import run_one

ARMS = ("off", "frozen", "full")


def histories(
    base: RunConfig, folder: Path, arms: tuple[str, ...] = ARMS
) -> dict[str, list[dict[str, Any]]]:
    """The history of each arm from the same initial weights, with a look inside at every record."""
    found = {}
    for arm in arms:
        config = replace(base, method=arm)
        settings = replace(settings_of(config), probe_every=1, stop_at=None)
        about = {"label": config.label, "network": config.network, "variance": config.variance}
        run = run_one(
            config.initial_network(),
            config.problem(),
            settings,
            folder / f"figure2-{config.key}",
            about,
            stepper=stepper_of(config),
        )
        found[config.label] = run.history
    return found
