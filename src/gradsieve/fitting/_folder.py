"""The folder that `gradsieve fit` writes, as a whole or not at all.

network.safetensors   the model: weights, scaling, names; diagnose and export read it
fit.json              the outcome, and every choice that led to it
report.html           how the training went
diagnosis.png         how far back the network learns
runs/                 the final runs, as `gradsieve report` reads them
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gradsieve.diagnosis import draw
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.files import leftover_prefix, remove_leftovers, sole_owner, write_atomically
from gradsieve.fitting._fit import Fitted
from gradsieve.model import Model

NETWORK = "network.safetensors"


@contextmanager
def whole_folder(target: Path, replace: bool = False) -> Iterator[Path]:
    """A folder to work in, which becomes `target` if all goes well and vanishes otherwise."""
    target = Path(os.path.abspath(target))  # "." has no name to make another from
    _mend(target)
    if target.exists() and not replace and (not target.is_dir() or any(target.iterdir())):
        raise InvalidArgument(
            f"{target}: exists already; choose another output folder, or --force to replace it"
        )
    existing = next(parent for parent in target.absolute().parents if parent.exists())
    try:
        remove_leftovers(existing / target.name)
        work = Path(tempfile.mkdtemp(dir=existing, prefix=leftover_prefix(target)))
    except OSError as error:
        raise GradsieveError(f"{target}: cannot be made ({error.strerror or error})") from error
    try:
        with sole_owner(work, "fitting"):  # by which others know that it is no leftover
            yield work
            work.chmod(0o755)
            target.parent.mkdir(parents=True, exist_ok=True)
            _move(work, target)
    except OSError as error:
        raise GradsieveError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _move(work: Path, target: Path) -> None:
    if not target.exists():
        os.replace(work, target)
        return
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=_old(target)))
    os.replace(target, old / target.name)
    os.replace(work, target)
    shutil.rmtree(old, ignore_errors=True)


def _old(target: Path) -> str:
    return f".{target.name}.old-"


def _mend(target: Path) -> None:
    """Undo a `_move` that a kill cut short: the former folder comes back, or its remains go."""
    for name in os.listdir(target.parent) if target.parent.is_dir() else ():
        if name.startswith(_old(target)):
            old = target.parent / name
            if not target.exists() and (old / target.name).exists():
                os.replace(old / target.name, target)
            shutil.rmtree(old, ignore_errors=True)


def write_outcome(fitted: Fitted, folder: Path) -> None:
    """Write all files but the runs, which training has written, and their report."""
    fitted.model.save(folder / NETWORK)
    write_atomically(folder / "fit.json", json.dumps(outcome(fitted), indent=1) + "\n")
    model = fitted.model
    net = model.net if isinstance(model, Model) else model
    draw(fitted.diagnosis, net, folder / "diagnosis.png")


def outcome(fitted: Fitted) -> dict[str, Any]:
    """The result in numbers, as fit.json holds it."""
    return _plain(_outcome(fitted))  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: they become null."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _outcome(fitted: Fitted) -> dict[str, Any]:
    task, run, found = fitted.task, fitted.run, fitted.diagnosis
    train = task.parts.train
    return {
        "format": "gradsieve-fit-2",
        "data": task.name,
        "kind": train.kind,
        "per": "step" if train.per_step else "series",
        "inputs": list(train.features),
        "classes": train.class_counts() or None,
        "series": {
            "train": train.count,
            "validation": task.parts.validation.count,
            "test": task.parts.test.count if task.parts.test is not None else 0,
        },
        "steps": {"shortest": int(train.lengths.min()), "longest": int(train.lengths.max())},
        "preparation": train.preparation.as_dict(),
        "score": dataclasses.asdict(fitted.score)
        | {
            "of": "R2" if train.classes is None else "accuracy",
            "part": "validation" if task.parts.test is None else "test",
        },
        "constant_guess": task.constant_guess,
        "hidden": fitted.model.hidden,
        "parameters": fitted.model.parameters,
        "chosen": dataclasses.asdict(fitted.chosen),
        "trials": [trial.as_dict() for trial in fitted.trials],
        "search": fitted.search.as_dict(),
        "recipe": run.recipe.as_dict(),
        "best_epoch": run.best_epoch,
        "updates": run.updates,
        "stopped": run.stopped,
        "kept": run.kept,
        "corrected": run.corrected,
        "sieve": sieve_reasons(fitted),
        "stalls": run.stalls,
        "nonfinite": run.nonfinite,
        "reach": found.reach,
        "slow_Q": found.slow_Q,
        "symptoms": [symptom.name for symptom in found.judgement.symptoms],
        "diagnosis": str(found),
        "seconds": fitted.seconds,
    }


def sieve_reasons(fitted: Fitted) -> dict[str, int]:
    """How often the final run's sieve gave each verdict, by the reason's name."""
    counts: Counter[str] = Counter()
    for record in fitted.run.history:
        counts.update(record["reasons"])
    return dict(counts)
