"""`gradsieve bench`: what an update costs, as ratios taken in one run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from gradsieve.bench import Measurement
from gradsieve.cli.console import Console
from gradsieve.errors import MissingExtra
from gradsieve.files import write_atomically


def bench(
    with_torch: Annotated[
        bool, typer.Option("--torch", help="What gst.Sieve costs for each kind of module instead.")
    ] = False,
    quick: Annotated[bool, typer.Option(help="Fewer turns, no growth with size.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the numbers as JSON too.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Measure what an update costs: PyTorch, JAX, the reference and the kernel, side by side.

    All steps train the same network on the same minibatch (T = 100, 100 units, 10 sequences,
    float32) on one core, and take turns, so that whatever else the machine does falls on all of
    them alike. What is not installed is left out and named.
    """
    console = Console(stderr=True)
    if with_torch:
        _bench_torch(quick, output, as_json)
        return
    from gradsieve.bench import measure

    with console.status("") as status:
        turns, seconds = (5, 0.05) if quick else (15, 0.1)
        found = measure(
            turns, seconds, not quick, lambda name: status.update(f"measuring {name} …")
        )
    numbers = json.dumps(found.as_dict(), indent=1)
    if output is not None:
        write_atomically(output, numbers + "\n")
    if as_json:
        print(numbers)
    else:
        _show(Console(), found)


def _show(console: Console, found: Measurement) -> None:
    own = found.timings["gradsieve plain"]
    table = Table(title="One update, T = 100, 100 units, 10 sequences, float32, one core")
    for heading in ("step", "ms", "times gradsieve plain", "lowest … highest"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for name, timing in found.timings.items():
        if name != "validation":
            ratio = timing.ratio_to(own)
            spread = f"{ratio.lowest:.2f} … {ratio.highest:.2f}"
            table.add_row(name, f"{timing.median * 1e3:.3f}", f"{ratio.median:.2f}", spread)
    console.print(table)
    console.print(
        f"Measured peak {found.peak:.0f} Gop/s ({found.instruction_set}). Of it, counting useful "
        f"operations only: plain step {found.plain_share:.0%}, validation of 1000 sequences "
        f"{found.validation_share:.0%}. Python is {found.overhead['plain']:.1%} of a plain and "
        f"{found.overhead['full']:.1%} of a full training step. Memory: {found.arrays:.1f} arrays "
        f"of T × B × H."
    )
    if found.two_networks is not None:
        console.print(f"Two networks on two cores: {found.two_networks:.2f} times the throughput.")
    for name in found.left_out:
        console.print(f"{name} is not installed and was left out (pip install 'gradsieve[bench]').")
    if found.points:
        console.print(_growth(found))


def _growth(found: Measurement) -> Table:
    table = Table(title="Growth with one size, the others being T = 100, H = 100, B = 10")
    for heading in ("size", "plain ms", "full ms", "full / plain", "share of peak", "arrays"):
        table.add_column(heading, justify="right")
    for point in found.points:
        table.add_row(
            f"{point.varied} {point.value}",
            f"{point.plain * 1e3:.3f}",
            f"{point.full * 1e3:.3f}",
            f"{point.full / point.plain:.2f}",
            f"{point.share:.0%}",
            f"{point.arrays:.1f}",
        )
    return table


def _bench_torch(quick: bool, output: Path | None, as_json: bool) -> None:
    try:
        from gradsieve.torch import cost
    except ImportError as error:
        raise MissingExtra("bench --torch", "torch") from error
    costs = cost.measure(repeats=5 if quick else 20)
    numbers = json.dumps([vars(item) for item in costs], indent=1)
    if output is not None:
        write_atomically(output, numbers + "\n")
    print(numbers if as_json else cost.table(costs))
