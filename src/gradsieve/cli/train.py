"""`gradsieve train`: one network on one of the paper's tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gradsieve import tasks
from gradsieve.cli.console import Console
from gradsieve.cli.progress import RunsProgress, signed
from gradsieve.cli.recipe_options import recipe_options
from gradsieve.network import SRN
from gradsieve.recipe import Recipe
from gradsieve.report.advice import advice
from gradsieve.report.runs import RecordedRun
from gradsieve.training import Job, Run, run_one

ENDINGS = {
    "epochs": "all epochs done",
    "solved": "solved",
    "patience": "no better network for long",
    "interrupted": "interrupted",
}


@recipe_options()
def train(
    task: Annotated[str, typer.Argument(help=f"Task: {', '.join(tasks.NAMES)}.")],
    length: Annotated[int, typer.Option(help="Time steps of a sequence.")] = 100,
    hidden: Annotated[int, typer.Option(help="Hidden units.")] = 100,
    *,
    recipe: Recipe,
    seed: Annotated[
        int, typer.Option(help="Seed of initial weights, data and order of minibatches.")
    ] = 0,
    convention: Annotated[
        str, typer.Option(help="Whose version of the task.", metavar="|".join(tasks.CONVENTIONS))
    ] = "author",
    initial: Annotated[Path | None, typer.Option(help="Start from this saved network.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Run folder; the same command goes on from it."),
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Write TensorBoard event files into this folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train one network on a task, and test the best one by validation.

    This one learns in seconds:

    [bold]gradsieve train temporal_order --length 50 --epochs 40 -o runs/first[/bold]

    The settings are those of the recommended recipe; each option replaces one. Ctrl-C ends the
    run with its best network so far, and the same command goes on from there.
    """
    problem = tasks.by_name(task, length, convention)  # type: ignore[arg-type]
    about: dict[str, Any] = {"network": seed}
    if initial is None:
        sizes = problem.inputs, hidden, problem.outputs, problem.output
        net = SRN.random(*sizes, start=recipe.start, seed=seed)
        about["drawn_by"] = seed
    else:
        net = SRN.load(initial)
    job = Job(problem, recipe, seed, about=about)
    epochs = recipe.budget.epochs
    name = f"{task} T={length} {'off' if recipe.sieve is None else recipe.sieve.policy}"
    with RunsProgress(Console(stderr=True)) as progress:
        on_record = _also_to_tensorboard(tensorboard, progress.row(name, epochs))
        run = run_one(net, job, output, on_record)
        progress.done(name, epochs, run.stopped)
    if as_json:
        print(json.dumps(run.result() | {"output": str(output) if output else None}))
    else:
        _say(Console(highlight=False), run, job, output)


def _also_to_tensorboard(
    folder: Path | None, shown: Callable[[dict[str, Any]], None]
) -> Callable[[dict[str, Any]], None]:
    if folder is None:
        return shown
    from gradsieve.report.tensorboard import TensorBoardSink

    sink = TensorBoardSink(folder)

    def on_record(record: dict[str, Any]) -> None:
        shown(record)
        sink(record)

    return on_record


def _say(console: Console, run: Run, job: Job, output: Path | None) -> None:
    chance = job.task.constant_guess
    console.print(
        f"Test accuracy [bold]{run.test_accuracy:.2%}[/bold] (a constant guess scores "
        f"{chance:.1%}); best network from epoch {run.best_epoch}; {ENDINGS[run.stopped]} after "
        f"{run.updates} updates in {run.seconds:.1f} s.",
        markup=True,
    )
    said = (
        [f"Slow Q at the end {signed(run.history[-1]['slow_Q']).strip()}."] if run.history else []
    )
    if run.recipe.sieve is not None:
        said.append(f"The sieve {run.corrections}.")
    if run.stalls:
        said.append(f"It stalled {run.stalls} times.")
    if run.nonfinite:
        said.append(f"{run.nonfinite} minibatches were not finite.")
    backs = sum(record.get("rolled_back", False) for record in run.history)
    if backs:
        often = "once" if backs == 1 else f"{backs} times"
        said.append(f"Its loss rose so far that it was rolled back {often}.")
    console.print(" ".join(said))
    about = {"task": job.task.name, "chance": chance}
    result = None if run.stopped == "interrupted" else run.result()
    tried = advice(RecordedRun(Path(), about, run.recipe, tuple(run.history), result))
    if tried:
        console.print(f"What to try next: {tried}.")
    if output is not None:
        told = f"Recorded in {output}; see it with: gradsieve report {output}"
        console.print(told, soft_wrap=True)
