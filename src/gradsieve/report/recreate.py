"""The lines of Python that make a run again, from its recipe.

Values are written as literals only, so that a stranger's run folder cannot bring code of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gradsieve import tasks
from gradsieve.recipe import PARTS, Recipe
from gradsieve.report.runs import RecordedRun
from gradsieve.settings import Settings


def recreate(run: RecordedRun) -> str | None:
    """Python that trains the same network in the same way; None where the recipe does not say all.

    That is a task of one's own, and an arm of a study whose steps are the study's own.
    """
    about = run.about
    if about.get("task") not in tasks.NAMES or about.get("extended"):
        return None
    task = {"name": about["task"]} | _known(about, "length", "convention", "tolerance")
    return "\n".join(
        [
            "import gradsieve as gs",
            "",
            _call("task = gs.tasks.by_name", task),
            _recipe(run.recipe),
            _network(run),
            _call("run = gs.train", _known(about, "seed", "engine"), "net, task, recipe"),
            "print(run.test_accuracy)",
        ]
    )


def _recipe(recipe: Recipe) -> str:
    """The recipe, by the settings that differ from its parts' defaults."""
    usual = Recipe()
    parts = [
        f"    {name}={_part(getattr(recipe, name))},\n"
        for name in PARTS
        if getattr(recipe, name) != getattr(usual, name)
    ]
    return f"recipe = gs.Recipe({chr(10) if parts else ''}{''.join(parts)})"


def _part(part: Settings | None) -> str:
    if part is None:
        return "None"
    usual = type(part)()
    changed = {name: value for name, value in vars(part).items() if value != getattr(usual, name)}
    return _call(f"gs.{type(part).__name__}", changed)


def _network(run: RecordedRun) -> str:
    """From the seed that drew it where that is known, otherwise from the file in the run folder."""
    if not run.drawn:
        return f"net = gs.SRN.load({str(run.folder / 'initial.safetensors')!r})"
    sizes = _known(run.about, "inputs", "hidden", "outputs", "output", "dtype")
    seed = {"seed": run.about["drawn_by"]}
    return _call("net = gs.SRN.random", {**sizes, **seed}, "start=recipe.start")


def _known(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name) is not None}


def _call(function: str, arguments: Mapping[str, Any], begin: str = "") -> str:
    written = [f"{name}={_literal(value)}" for name, value in arguments.items()]
    return f"{function}({', '.join([begin, *written] if begin else written)})"


def _literal(value: object) -> str:
    """Numbers, words, None and tuples of them; other JSON values are no settings."""
    if isinstance(value, tuple):
        return f"({''.join(f'{_literal(one)}, ' for one in value)})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value if isinstance(value, int | float | str | None) else None)
