"""Run folders of version 0.1, whose run.json was one flat list of settings.

The only file that knows how they were written: `upgraded` says the same as version 0.2 would.
"""

from __future__ import annotations

from typing import Any

from gradsieve.recipe import PARTS, RENAMED
from gradsieve.settings import rules

OLD_FORMAT, FORMAT = "gradsieve-run-1", "gradsieve-run-2"
GONE = ("measure", "orientation")  # settings of single studies
STUDIES_OWN = ("random", "regularise")  # labels of arms with steps of their own
ABOUT = ("label", "network", "task", "length", "convention", "tolerance", "chance", "inputs",
         "hidden", "outputs", "output", "dtype", "seed", "engine", "versions")  # fmt: skip


def upgraded(stored: dict[str, Any]) -> dict[str, Any]:
    """The content of a run.json in the form of this version, which is left as it is."""
    if stored.get("format") != OLD_FORMAT:
        return stored
    flat = {RENAMED.get(name, name): value for name, value in stored.items() if name not in GONE}
    sieve = flat.pop("sieve", None)
    recipe: dict[str, Any] = {
        part: {name: flat[name] for name in rules(group) if name in flat}
        for part, group in PARTS.items()
        if part != "sieve"
    }
    recipe["curriculum"]["stages"] = _shares(flat)
    recipe["sieve"] = _sieve(sieve) if isinstance(sieve, dict) else None
    about = {name: flat[name] for name in ABOUT if name in flat}
    drawn_by = stored.get("network") if stored.get("variance") is not None else None
    extended = {"extended": True} if _extended(stored, sieve) else {}
    return {"format": FORMAT, **about, "drawn_by": drawn_by, "recipe": recipe, **extended}


def _sieve(old: dict[str, Any]) -> dict[str, Any]:
    """Corrections were not bounded, `every` was 1, and every policy had a `max_change`."""
    known = {name: value for name, value in old.items() if name in rules(PARTS["sieve"])}
    known = {"policy": "skip"} | known | {"limit": "inf", "every": 1}
    return known if known["policy"] == "skip" else known | {"max_change": None}


def _extended(stored: dict[str, Any], sieve: Any) -> bool:
    """Whether the run's steps had an addition that no recipe has."""
    of_study = str(stored.get("label")).split("+")[0] in STUDIES_OWN
    given: dict[str, Any] = sieve if isinstance(sieve, dict) else {}
    bounded = given.get("policy", "skip") != "skip" and given.get("max_change") is not None
    return of_study or bounded or given.get("orientation") == "listing"


def _shares(flat: dict[str, Any]) -> list[list[float]]:
    """Stages were whole numbers of steps and epochs; now they are shares of the run's."""
    stages, length, epochs = flat.get("stages") or [], flat.get("length"), flat.get("epochs")
    if not (isinstance(length, int) and isinstance(epochs, int) and length and epochs):
        return []
    try:
        return [[steps / length, share / epochs] for steps, share in stages]
    except (TypeError, ValueError):
        return []
