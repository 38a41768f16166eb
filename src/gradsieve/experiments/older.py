"""Records of version 0.1, whose configurations were a method's name and a flat list of options.

The only file that knows their form, and the names of their arms.
"""

from __future__ import annotations

import math
from typing import Any

from gradsieve.experiments import ways
from gradsieve.experiments.baselines import Baseline, Listing, RandomSkip, Regularised
from gradsieve.experiments.config import Condition, RunConfig
from gradsieve.recipe import RENAMED, Recipe, Sieve

JUDGED = {
    "frozen": "skip (Lemma 1)",
    "full": "skip (full dS)",
    "listing": "Algorithm 1 as printed",
    "random": "random skipping",
    "regularise": "SGD-CR",
    "select": "select",
    "steer": "steer",
}
BUILT_ON = {  # without and with hold
    "clip": "clipping",
    "rms+clip": "RMSprop + clipping",
    "identity+rms+clip": "identity start",
    "stages+rms+clip": "curriculum",
    "bent+stages+rms+clip": "curriculum, large input weights",
    "bent+growth+rms+clip": "fine curriculum",
    "bent+growth+wide+rms+clip": "fine curriculum, larger minibatches",
    "identity+bent+growth+wide+rms+clip": "fine curriculum, identity start",
}
# The name of an arm by its label in version 0.1.
NAMES = {
    "off": "SGD",
    **JUDGED,
    **{f"{label}+clip": f"clipping, {name}" for label, name in JUDGED.items()},
    "start+clip": "clipping, the gain of hold",
    "regularise+rms+clip": "RMSprop + clipping, SGD-CR",
    **BUILT_ON,
    **{f"hold+{label}": f"{name}, hold" for label, name in BUILT_ON.items()},
}
IN_LABELS = {
    "identity": "identity",
    "input_gain": "bent",
    "stages": "stages",
    "growth": "growth",
    "wide": "wide",
    "rms_decay": "rms",
}
OPTIONS = RENAMED | {"growth": "rate_power", "wide": "batch_power"}  # by their names now
OF_A_METHOD = ("q_min", "q_max", "steer_rate", "kept", "weight", "identity", "stages")


def upgraded(plain: dict[str, Any]) -> RunConfig:
    """The run that a configuration of either version describes."""
    if "method" not in plain:
        return RunConfig.from_dict(plain)
    options: dict[str, float] = dict(plain["options"])
    recipe = ways.budgeted(Recipe(), plain["epochs"]).replaced(
        sieve=_sieve(plain["method"], options),
        learning_rate=plain["learning_rate"],
        clip=plain["clip"],
        variance=plain["variance"],
        recurrent="identity" if "identity" in options else "gaussian",
        stages=ways.FINE if "growth" in options else ways.COARSE if "stages" in options else (),
        **{OPTIONS.get(name, name): x for name, x in options.items() if name not in OF_A_METHOD},
    )
    return RunConfig(
        Condition(plain["task"], plain["length"]),
        plain["network"],
        recipe,
        _baseline(plain["method"], options),
        plain["hidden"],
        NAMES[_label(plain["method"], options, plain["clip"] is not None)],
    )


def _sieve(method: str, options: dict[str, float]) -> Sieve | None:
    """Corrections were not bounded."""
    if method in ("off", "start", "random", "regularise"):
        return None
    lowest, highest = {"hold": (-2.0, 0.5), "steer": (-2.0, 1.0)}.get(method, (-1.0, 1.0))
    q_range = (options.get("q_min", lowest), options.get("q_max", highest))
    if method in ("hold", "steer"):
        rate = options.get("steer_rate", 0.02)
        return Sieve(method, q_range, steer_rate=rate, limit=math.inf)  # type: ignore[arg-type]
    if method == "select":
        return Sieve("select", q_range)
    return Sieve("skip", q_range, "full" if method == "full" else "frozen")


def _baseline(method: str, options: dict[str, float]) -> Baseline | None:
    if method == "random":
        return RandomSkip(options.get("kept", 0.5))
    if method == "regularise":
        return Regularised(options.get("weight", 1.0))
    return Listing() if method == "listing" else None


def _label(method: str, options: dict[str, float], clipped: bool) -> str:
    parts = [method] if method != "off" else []
    parts += [name for option, name in IN_LABELS.items() if option in options]
    return "+".join(parts + ["clip"] * clipped) or "off"
