"""The lines of Python that make a run again, from its settings.

Values are written as literals only, so that settings from a stranger's run folder cannot bring
code of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from gradsieve import tasks
from gradsieve.report.runs import Run
from gradsieve.sieve import Sieve
from gradsieve.training import Settings

# Arms of `gradsieve reproduce` whose minibatches are treated by code of their own.
OTHER_STEPPERS = ("random", "regularise")


def recreate(run: Run) -> str | None:
    """Python that trains the same network in the same way; None where settings do not say all."""
    settings = run.settings
    if settings.get("task") not in tasks.NAMES or run.label.split("+")[0] in OTHER_STEPPERS:
        return None
    chosen = [field.name for field in dataclasses.fields(Settings) if field.name in settings]
    sieve = settings.get("sieve")
    lines = ["import gradsieve as gs", "", _call("task = gs.tasks.by_name", _task(settings))]
    lines.append(_network(run))
    if isinstance(sieve, Mapping):
        known = [field.name for field in dataclasses.fields(Sieve) if field.name in sieve]
        lines.append(_call("sieve = gs.Sieve", {name: sieve[name] for name in known}))
    arguments = {name: settings[name] for name in chosen if name != "sieve"}
    begin = "net, task, sieve" if isinstance(sieve, Mapping) else "net, task"
    lines += [_call("run = gs.train", arguments, begin), "print(run.test_accuracy)"]
    return "\n".join(lines)


def _task(settings: Mapping[str, Any]) -> dict[str, Any]:
    names = ("length", "convention", "tolerance")
    known = {name: settings[name] for name in names if settings.get(name) is not None}
    return {"name": settings["task"], **known}


def _network(run: Run) -> str:
    """From its seed where that is known, else from the file beside the history."""
    settings = run.settings
    if settings.get("variance") is None:
        return f"net = gs.SRN.load({str(run.folder / 'initial.safetensors')!r})"
    names = (
        "inputs", "hidden", "outputs", "output", "variance", "dtype", "gain", "recurrent",
        "input_gain", "bias_spread",
    )  # fmt: skip
    arguments = {name: settings[name] for name in names if name in settings}
    return _call("net = gs.SRN.random", {**arguments, "seed": settings.get("network")})


def _call(function: str, arguments: Mapping[str, Any], begin: str = "") -> str:
    written = [f"{name}={_literal(value)}" for name, value in arguments.items()]
    return f"{function}({', '.join([begin, *written] if begin else written)})"


def _literal(value: object) -> str:
    """Numbers, words, None and tuples of them; what JSON has besides is no setting."""
    if isinstance(value, list):
        return f"({''.join(f'{_literal(one)}, ' for one in value)})"
    return repr(value if isinstance(value, int | float | str | None) else None)
