"""Figure 2 of the paper: the inside of one network during training, without and with the sieve.

Beside the paper's two (`off`, and on by `frozen`) stand `full`, clipping, and what we recommend.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.methods import settings_of, stepper_of
from gradsieve.training.run import run_one

PAPER = RunConfig("temporal_order", 100, "off", network=0, learning_rate=1e-5)
CLIPPED = replace(PAPER, learning_rate=1e-3, clip=1.0)
ARMS = (
    PAPER,
    replace(PAPER, method="frozen"),
    replace(PAPER, method="full"),
    CLIPPED,
    replace(CLIPPED, method="hold"),
)


def history(config: RunConfig, folder: Path) -> list[dict[str, Any]]:
    """The history of one arm, with a look inside at every record."""
    settings = replace(settings_of(config), probe_every=1, stop_at=None)
    where = folder / f"figure2-{config.key}"
    net, task = config.initial_network(), config.problem()
    return run_one(net, task, settings, where, config.about(), stepper=stepper_of(config)).history
