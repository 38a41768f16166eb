"""How the defaults of `gradsieve fit` are chosen: on data sets that no table reports.

    OMP_NUM_THREADS=1 python benchmarks/own_data_defaults.py results/own-data

The sets are generators from the literature and the digits that ship with scikit-learn. Each is cut
into a part for `fit`, which splits off its own validation part, and fresh series that score the
network. A variant differs from the defaults in one choice. Its gain is the mean difference of the
scores (accuracy, or R² but not below 0), paired by set and seed, with the standard error of that
mean.

The rule, fixed before the results: a variant that costs more time replaces the default if its gain
is above two standard errors; a cheaper one if its loss is below one. The rows are in defaults.csv,
and runs that are there are not made again; defaults.md is the table.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve.data import Sequences, from_arrays
from gradsieve.fitting import Search, fit, own_recipe
from gradsieve.recipe import Recipe

FRESH = 500  # series that score a network
Draw = Callable[[np.random.Generator, int], Sequences]


def cylinder_bell_funnel(rng: np.random.Generator, count: int) -> Sequences:
    """Saito 1994: a plateau, a rise or a fall somewhere in noise; 64 to 128 steps."""
    shapes = rng.integers(0, 3, count)
    series = []
    for shape in shapes:
        begin, length, total = rng.integers(8, 32), rng.integers(16, 64), rng.integers(64, 129)
        along = np.clip((np.arange(total) - begin) / length, 0, 1)
        inside = (np.arange(total) >= begin) & (np.arange(total) < begin + length)
        form = (np.ones(total), along, 1 - along)[shape]
        series.append(((6 + rng.normal()) * inside * form + rng.normal(size=total))[:, None])
    return from_arrays(series, shapes, ("cylinder", "bell", "funnel"))


def two_patterns(rng: np.random.Generator, count: int) -> Sequences:
    """Geurts 2002: the order of two steps, up or down, far apart in noise; 128 steps."""
    labels = rng.integers(0, 4, count)
    series = rng.normal(scale=0.5, size=(count, 128, 1))
    for one, label in zip(series, labels, strict=True):
        for start, up in ((rng.integers(8, 40), label // 2), (rng.integers(64, 100), label % 2)):
            half = rng.integers(6, 12)
            sign = 1 if up else -1
            one[start : start + half, 0] -= 5 * sign
            one[start + half : start + 2 * half, 0] += 5 * sign
    return from_arrays(list(series), labels, ("dd", "du", "ud", "uu"))


def control_charts(rng: np.random.Generator, count: int) -> Sequences:
    """Alcock and Manolopoulos 1999: six kinds of control charts; 60 steps."""
    labels, t = rng.integers(0, 6, count), np.arange(60)
    series = []
    for label in labels:
        size, period, slope = rng.uniform(10, 15), rng.uniform(10, 15), rng.uniform(0.2, 0.5)
        shift = rng.uniform(7.5, 20) * (t >= rng.integers(20, 40))
        zero = np.zeros(60)
        form = (zero, size * np.sin(2 * np.pi * t / period), slope * t, -slope * t, shift, -shift)
        series.append((30 + 2 * rng.uniform(-3, 3, 60) + form[label])[:, None])
    return from_arrays(series, labels, ("normal", "cyclic", "up", "down", "shift up", "shift down"))


def digit_pixels(rng: np.random.Generator, count: int) -> Sequences:
    """scikit-learn's digits of 8 × 8 pixels, one pixel a step; 64 steps."""
    return _digits(rng, count, 1)


def digit_rows(rng: np.random.Generator, count: int) -> Sequences:
    """The same digits, a row of pixels a step; 8 steps of 8 inputs."""
    return _digits(rng, count, 8)


def _digits(rng: np.random.Generator, count: int, inputs: int) -> Sequences:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    chosen = rng.permutation(len(images))[:count]
    names = [str(digit) for digit in range(10)]
    return from_arrays(list(images[chosen].reshape(count, -1, inputs)), labels[chosen], names)


def narma(rng: np.random.Generator, count: int) -> Sequences:
    """Atiya and Parlos 2000: a system of order 10, to be followed at every step; 60 steps."""
    inputs, wanted = rng.uniform(0, 0.5, (count, 60)), np.zeros((count, 60))
    for n in range(9, 59):
        sums = wanted[:, n - 9 : n + 1].sum(axis=1)
        product = inputs[:, n - 9] * inputs[:, n]
        wanted[:, n + 1] = 0.3 * wanted[:, n] + 0.05 * wanted[:, n] * sums + 1.5 * product + 0.1
    return from_arrays(list(inputs[:, :, None]), wanted.reshape(-1, 1), per_step=True)


SETS: dict[str, tuple[Draw, int]] = {  # and how many series `fit` gets
    "cylinder, bell, funnel": (cylinder_bell_funnel, 60),
    "two patterns": (two_patterns, 200),
    "control charts": (control_charts, 120),
    "digit pixels": (digit_pixels, 400),
    "digit rows": (digit_rows, 200),
    "NARMA": (narma, 80),
}

Variant = tuple[dict[str, Any], dict[str, Any]]  # settings of the recipe, of the search
VARIANTS: dict[str, Variant] = {
    "default": ({}, {}),
    "sieve off": ({"sieve": "off"}, {}),
    "orthogonal and identity": ({}, {"starts": ("orthogonal", "identity")}),
    "orthogonal": ({}, {"starts": ("orthogonal",)}),
    "no noise": ({}, {"noises": (0.0,)}),
    "three finalists": ({}, {"finalists": 3}),
    "lower rates": ({}, {"rates": (3e-4, 1e-3, 3e-3)}),
    "twice the epochs": ({"epochs": 200, "patience": 100}, {}),
    "64 units": ({}, {"hidden": 64}),
}


def sequences(name: str, seed: int) -> tuple[Sequences, Sequences]:
    """The series that `fit` gets, and fresh ones."""
    draw, count = SETS[name]
    both = draw(np.random.default_rng(seed), count + FRESH)
    return both.subset(np.arange(count)), both.subset(np.arange(count, count + FRESH))


def score(name: str, variant: str, seed: int) -> dict[str, Any]:
    """One row of defaults.csv."""
    settings, searched = VARIANTS[variant]
    recipe: Recipe = own_recipe().replaced(**settings)
    given, fresh = sequences(name, seed)
    began = time.process_time()
    fitted = fit(given, recipe, replace(Search(), **searched), test=fresh, seed=seed, jobs=1)
    return {
        "set": name,
        "seed": seed,
        "variant": variant,
        "score": round(max(0.0, fitted.score.value), 6),
        "validation_loss": round(fitted.run.validation_loss, 6),
        "corrected": round(fitted.run.corrected, 4),
        "start": fitted.chosen.start,
        "learning_rate": fitted.chosen.learning_rate,
        "noise": fitted.chosen.noise,
        "epochs": fitted.run.history[-1]["epoch"],
        "cpu_seconds": round(time.process_time() - began, 2),
    }


def table(rows: list[dict[str, Any]], command: str) -> str:
    """Markdown: each variant against the default."""
    scores = {(row["variant"], row["set"], int(row["seed"])): row for row in rows}
    lines = [
        "# How the defaults of `gradsieve fit` were chosen",
        "",
        f"Made by `{command}`; its docstring has the sets and the rule. Score: accuracy, or R², on "
        f"{FRESH} fresh series. Gain: over the default, paired by set and seed, ± its standard "
        "error. Time: CPU seconds over the default's.",
        "",
        f"| variant | {' | '.join(SETS)} | mean | gain | time |",
        "|---" * (len(SETS) + 4) + "|",
    ]
    for variant in VARIANTS:
        mine = {key[1:]: row for key, row in scores.items() if key[0] == variant}
        pairs = [(row, scores["default", *key]) for key, row in mine.items()
                 if ("default", *key) in scores]  # fmt: skip
        if not pairs:
            continue
        by_set = [
            _percent([row for (name, _), row in mine.items() if name == each]) for each in SETS
        ]
        gains = [float(one["score"]) - float(base["score"]) for one, base in pairs]
        error = statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan
        spent = [
            sum(float(row["cpu_seconds"]) for row in side) for side in zip(*pairs, strict=True)
        ]
        gain = f"{100 * statistics.mean(gains):+.1f} ± {100 * error:.1f}"
        lines.append(
            f"| {variant} | {' | '.join(by_set)} | {_percent(list(mine.values()))} | "
            f"{'' if variant == 'default' else gain} | {spent[0] / spent[1]:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _percent(rows: list[dict[str, Any]]) -> str:
    return f"{100 * statistics.mean(float(row['score']) for row in rows):.1f}" if rows else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    asked = parser.parse_args()
    asked.output.mkdir(parents=True, exist_ok=True)
    file = asked.output / "defaults.csv"
    rows: list[dict[str, Any]] = list(csv.DictReader(file.open())) if file.exists() else []
    done = {(row["set"], int(row["seed"]), row["variant"]) for row in rows}
    for seed in range(asked.seeds):
        for variant in asked.variants:
            for name in SETS:
                if (name, seed, variant) not in done:
                    rows.append(score(name, variant, seed))
                    print(rows[-1], flush=True)
                    write(file, rows)
    command = f"OMP_NUM_THREADS=1 python benchmarks/own_data_defaults.py {asked.output}"
    (asked.output / "defaults.md").write_text(table(rows, f"{command} --seeds {asked.seeds}"))


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
