"""summary.md and accuracy-against-bytes.png from the rows of results.jsonl.

python benchmarks/own_data_tables.py results/own-data
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

Row = dict[str, Any]
COMMAND = "OMP_NUM_THREADS=1 python benchmarks/own_data.py results/own-data --seeds 5"
PAIRS = (
    ("fit", "fit --sieve off"),
    ("fit", "nn.RNN"),
    ("fit --cell gru", "nn.GRU"),
    ("fit --cell lstm", "nn.LSTM"),
    ("fit --cell auto", "fit"),
)
COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#e69f00", "#666666", "#000000")


def write_tables(rows: list[Row], folder: Path, data: list[str], methods: list[str]) -> None:
    by = {
        (name, method): [row for row in rows if (row["data"], row["method"]) == (name, method)]
        for name in data
        for method in methods
    }
    budgets = sorted({f"{row['seconds']:g}" for row in rows})
    lines = [
        "# Own data: series that ship inside aeon, default flags",
        "",
        f"Made by `{COMMAND}`; not all of its runs are done where a cell has fewer than five seeds "
        "or is –, and the same command goes on. Official training and test parts. Score: accuracy "
        "on the test part, or R² of the two regression sets; mean over seeds ± standard deviation "
        f"(seeds). CPU time of search and training of `fit` and of the PyTorch networks: "
        f"{' or '.join(budgets)} seconds each.",
        "",
        "## Score",
        "",
        *table(by, data, methods, scores),
        "",
        "## Score with int8 weights",
        "",
        *table(by, data, methods, lambda found: mean(found, "score_int8", "{:.3f}")),
        "",
        "## CPU seconds to a trained network; of 1-NN DTW, to classify the test part",
        "",
        *table(by, data, methods, lambda found: mean(found, "cpu_seconds", "{:.1f}")),
        "",
        "## Bytes of constants, float32 (int8)",
        "",
        *table(by, data, methods, sizes),
        "",
        "## Multiplications a step",
        "",
        *table(by, data, methods, lambda found: mean(found, "multiplications", "{:,.0f}")),
        "",
        "## Differences in score, paired by set and seed",
        "",
        "| | mean difference ± standard error | pairs | better / worse |",
        "|---|---|---|---|",
        *(difference(rows, *pair) for pair in PAIRS),
    ]
    (folder / "summary.md").write_text("\n".join(lines) + "\n")
    draw(by, data, methods, folder / "accuracy-against-bytes.png")


def table(by: Any, data: list[str], methods: list[str], say: Any) -> list[str]:
    return [
        f"| data | {' | '.join(methods)} |",
        "|---" * (len(methods) + 1) + "|",
        *(
            f"| {name} | {' | '.join(say(by[name, method]) for method in methods)} |"
            for name in data
        ),
    ]


def scores(found: list[Row]) -> str:
    if not found:
        return "–"
    values = [row["score"] for row in found]
    spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.3f}{spread} ({len(values)})"


def mean(found: list[Row], field: str, form: str) -> str:
    values = [row[field] for row in found if row.get(field) is not None]
    return form.format(statistics.mean(values)) if values else "–"


def sizes(found: list[Row]) -> str:
    int8 = mean(found, "bytes_int8", "{:,.0f}")
    return mean(found, "bytes", "{:,.0f}") + ("" if int8 == "–" else f" ({int8})")


def difference(rows: list[Row], one: str, other: str) -> str:
    of = {(row["method"], row["data"], row["seed"]): row["score"] for row in rows}
    gains = [
        value - of[other, *key]
        for (method, *key), value in of.items()
        if method == one and (other, *key) in of
    ]
    if len(gains) < 2:
        return f"| {one} − {other} | – | {len(gains)} | – |"
    error = statistics.stdev(gains) / math.sqrt(len(gains))
    better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    return (
        f"| {one} − {other} | {statistics.mean(gains):+.3f} ± {error:.3f} | {len(gains)} | "
        f"{better} / {worse} |"
    )


def draw(by: Any, data: list[str], methods: list[str], path: Path) -> None:
    """Mean accuracy over the classification sets that every method has, against mean bytes."""
    from matplotlib.figure import Figure

    names = [
        name for name in data
        if name not in ("CardanoSentiment", "Covid3Month")
        and all(by[name, method] for method in methods)
    ]  # fmt: skip
    if not names:
        return
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for number, method in enumerate(methods):
        colour = COLOURS[number % len(COLOURS)]
        for size, score, marker in (("bytes", "score", "o"), ("bytes_int8", "score_int8", "v")):
            if not all(size in row for name in names for row in by[name, method]):
                continue
            means = [
                [statistics.mean(row[field] for row in by[name, method]) for name in names]
                for field in (size, score)
            ]
            x, y = statistics.geometric_mean(means[0]), statistics.mean(means[1])
            axes.plot(x, y, marker, color=colour, markersize=9 if marker == "o" else 6)
            if marker == "o":
                axes.annotate(method, (x, y), xytext=(7, 3), textcoords="offset points", fontsize=9)
    axes.set_xscale("log")
    axes.set_xlabel("bytes of constants, geometric mean (circles float32, triangles int8)")
    axes.set_ylabel("accuracy on the test part, mean")
    axes.set_title(f"Accuracy against bytes, {len(names)} classification sets of aeon")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    from own_data import CLASSIFICATION, METHODS, REGRESSION

    where = Path(sys.argv[1])
    read = [json.loads(line) for line in (where / "results.jsonl").read_text().splitlines()]
    write_tables(read, where, [*CLASSIFICATION, *REGRESSION], list(METHODS))
