"""Real series that ship inside aeon: `fit` with each cell against what a person would use instead.

    OMP_NUM_THREADS=1 python benchmarks/own_data.py results/own-data --seeds 5

Every classification and regression set of the package, official training and test parts, default
flags. `fit` and each PyTorch network get the same CPU time (`SECONDS`); a seed decides validation
part, initial weights and order. A row of results.jsonl is a finished run and is not made again, so
the command goes on where it was interrupted; `own_data_tables.py` makes summary.md and the picture
of whatever rows there are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from own_data_others import OTHERS, needs
from own_data_tables import write_tables

from gradsieve.data import Sequences, read
from gradsieve.export import quantised
from gradsieve.fitting import Search, cells, fit, own_recipe

CLASSIFICATION = (
    "ItalyPowerDemand", "UnitTest", "JapaneseVowels", "Covid3Month_disc", "BasicMotions",
    "GunPoint", "ArrowHead", "PickupGestureWiimoteZ", "OSULeaf", "ACSF1",
)  # fmt: skip
REGRESSION = ("CardanoSentiment", "Covid3Month")
SECONDS = 5.0  # of CPU: search and training of one network
ONCE = ("1-NN DTW", "ridge")  # nothing in them is random


def load(name: str) -> tuple[Sequences, Sequences]:
    import aeon.datasets

    folder = Path(aeon.datasets.__file__).parent / "data" / name
    return read(folder / f"{name}_TRAIN.ts"), read(folder / f"{name}_TEST.ts")


def gradsieve_fit(cell: str, sieve: str | None = None) -> Callable[..., dict[str, Any]]:
    def run(train: Sequences, test: Sequences, seed: int, seconds: float) -> dict[str, Any]:
        recipe = own_recipe() if sieve is None else own_recipe().replaced(sieve=sieve)
        search = Search(cells=cells(cell), seconds=seconds, clock="cpu")
        fitted = fit(train, recipe, search, test=test, seed=seed, jobs=1)
        return needs(fitted.model) | {
            "score": fitted.score.value,
            "score_int8": quantised(fitted.model).score(fitted.task.tested),
            "corrected": round(fitted.run.corrected, 4),
            "chosen": str(fitted.chosen),
        }

    return run


METHODS: dict[str, Callable[..., dict[str, Any]]] = {
    "fit": gradsieve_fit("tanh"),
    "fit --sieve off": gradsieve_fit("tanh", "off"),
    "fit --cell gru": gradsieve_fit("gru"),
    "fit --cell lstm": gradsieve_fit("lstm"),
    "fit --cell auto": gradsieve_fit("auto"),
    **OTHERS,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--data", nargs="*", default=[*CLASSIFICATION, *REGRESSION])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    file = asked.output / "results.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(row["data"], row["method"], row["seed"]) for row in rows}
    for seed in range(asked.seeds):
        for name in asked.data:
            train, test = load(name)
            for method in asked.methods:
                if (name, method, seed) in done or (seed and method in ONCE):
                    continue
                row = {"data": name, "method": method, "seed": seed, "seconds": asked.seconds}
                began = time.process_time()
                found = METHODS[method](train, test, seed, asked.seconds)
                row |= {"cpu_seconds": round(time.process_time() - began, 2)} | found
                rows.append(row)
                with file.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    write_tables(rows, asked.output, [*CLASSIFICATION, *REGRESSION], list(METHODS))


if __name__ == "__main__":
    main()
