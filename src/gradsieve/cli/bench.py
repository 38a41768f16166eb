"""`gradsieve bench`: the cost of training, as ratios of one run, and the time to accuracy."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gradsieve.cli.console import Console
from gradsieve.errors import needs_extra
from gradsieve.files import write_atomically


def bench(
    with_torch: Annotated[
        bool, typer.Option("--torch", help="Measure gst.Sieve for each kind of module instead.")
    ] = False,
    to_accuracy: Annotated[
        bool,
        typer.Option("--time-to-accuracy", help="Measure the seconds to 99 % on a task instead."),
    ] = False,
    task: Annotated[str, typer.Option(help="Task of --time-to-accuracy.")] = "temporal_order",
    length: Annotated[int, typer.Option(min=10, help="Time steps of a sequence.")] = 200,
    networks: Annotated[int, typer.Option(min=1, help="Networks of each contestant.")] = 3,
    cap: Annotated[float, typer.Option(min=1, help="Seconds for each network.")] = 60.0,
    cores: Annotated[
        int | None,
        typer.Option(min=1, help="Measure on this many only; by default on one and on all."),
    ] = None,
    quick: Annotated[bool, typer.Option(help="One size, few turns, no growth with size.")] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A JSON file; .md and .png are written beside it."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Measure the cost of training: gradsieve, PyTorch and JAX, side by side.

    The matrix has tanh, GRU and LSTM networks of several sizes, on one core and on all, plain,
    judged and corrected. Steps of one size take turns, so that other work of the machine falls on
    all of them alike. Libraries that are not installed are left out and named.
    """
    if with_torch:
        _bench_torch(quick, output, as_json)
        return
    from gradsieve.bench.page import Findings, page

    found = Findings() if output is None else Findings.read(output)
    console = Console(stderr=True)
    with console.status("") as status:

        def before(name: str) -> None:
            if console.is_terminal:
                status.update(f"{name} …")
            else:
                console.print(name)

        if to_accuracy:
            _require_torch("bench --time-to-accuracy")
            from gradsieve import tasks
            from gradsieve.bench.accuracy import time_to_accuracy

            chosen = tasks.by_name(task, length)
            kept = [one for one in found.outcomes if (one.task, one.length) != (task, length)]
            found = replace(found, outcomes=kept)
            for outcome in time_to_accuracy(chosen, networks, cap, before):
                found = replace(found, outcomes=[*found.outcomes, outcome])
                if output is not None:  # an hour's work is not lost when it is interrupted
                    found.write(output)
        else:
            from gradsieve.bench.matrix import left_out, measure_all

            for name in left_out():
                console.print(
                    f"{name} is not installed and is left out (pip install 'gradsieve[bench]')."
                )

            rows, growth = measure_all(quick, cores, before)
            found = replace(found, rows=rows, growth=growth)
    if output is not None:
        found.write(output)
    print(found.as_json() if as_json else page(found))


def _require_torch(what: str) -> None:
    with needs_extra(what, "torch"):
        import gradsieve.torch  # noqa: F401


def _bench_torch(quick: bool, output: Path | None, as_json: bool) -> None:
    _require_torch("bench --torch")
    from gradsieve.bench.module_costs import measure, table
    from gradsieve.bench.workload import Dimensions

    costs = measure(Dimensions("tanh", 100, 10, 100), turns=5 if quick else 20)
    numbers = json.dumps([cost.as_dict() for cost in costs], indent=1)
    if output is not None:
        write_atomically(output, numbers + "\n")
    print(numbers if as_json else table(costs))
