"""`gradsieve fit`: a network for your own sequences."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gradsieve.cli.console import Console
from gradsieve.cli.own_data import Table, table_options
from gradsieve.cli.progress import RunsProgress
from gradsieve.cli.recipe_options import recipe_options
from gradsieve.data import Preparation
from gradsieve.errors import InvalidArgument
from gradsieve.fitting import (
    NETWORK,
    Fitted,
    OnRecord,
    Search,
    cells,
    outcome,
    own_recipe,
    sieve_reasons,
    whole_folder,
    write_outcome,
)
from gradsieve.fitting import fit as fit_sequences
from gradsieve.recipe import Recipe
from gradsieve.report import write_report
from gradsieve.settings import rules
from gradsieve.sieve import Reason

UNEVEN = 1.5  # largest class over smallest from which imbalance is spoken of
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
PREPARED = {name: rule.help for name, rule in rules(Preparation).items()}
SEARCHED = {name: rule.help for name, rule in rules(Search).items()}


@table_options
@recipe_options(
    "sieve",
    "start",
    "optimiser",
    "schedule",
    "budget",
    without=("start", "learning_rate", "horizon", "sizes", "stop_at", "probe_every"),
    bases={"own": own_recipe},
)
def fit(
    data: Annotated[Path, typer.Argument(help="NPZ, CSV, Parquet or .ts file with sequences.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    test: Annotated[
        Path | None, typer.Option(help="Test on this file instead of a share of DATA.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(help="Time for search and training, e.g. 60s, 10m or 1h.", metavar="TIME"),
    ] = None,
    kind: Annotated[
        str, typer.Option(help="Kind of the targets: auto, classification or regression.")
    ] = "auto",
    per: Annotated[str, typer.Option(help="Owner of a target: auto, series or step.")] = "auto",
    *,
    table: Table,
    missing: Annotated[
        str, typer.Option(help=PREPARED["missing"], metavar="refuse|mean|last")
    ] = "refuse",
    spacing: Annotated[
        str, typer.Option(help=PREPARED["spacing"], metavar="refuse|ignore|resample")
    ] = "refuse",
    lengths: Annotated[str, typer.Option(help=PREPARED["lengths"], metavar="keep|refuse")] = "keep",
    cell: Annotated[
        str,
        typer.Option(
            help="tanh, gru or lstm, or auto: the best of them by validation. PyTorch trains gru "
            "and lstm.",
            metavar="tanh|gru|lstm|auto",
        ),
    ] = "tanh",
    hidden: Annotated[int | None, typer.Option(help=SEARCHED["hidden"])] = None,
    learning_rate: Annotated[
        str | None, typer.Option(help="Learning rates to try, with commas.", metavar="NUMBERS")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="Starts to try, with commas.", metavar="NAMES")
    ] = None,
    noise: Annotated[str | None, typer.Option(help=SEARCHED["noises"], metavar="NUMBERS")] = None,
    networks: Annotated[int, typer.Option(help=SEARCHED["networks"])] = 1,
    recipe: Recipe,
    validation_share: Annotated[
        float, typer.Option(help="Share of the series that choose the network.")
    ] = 0.2,
    test_share: Annotated[
        float, typer.Option(help="Share of the series that test it, unless --test is given.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Decides split, initial weights and order.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Runs at a time; default: one a core.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train a small network on your own sequences and say how good it is.

    [bold]gradsieve fit gestures.csv -o gestures[/bold]

    CSV and Parquet are in long form: one row a time step, with columns for the series, the time,
    the features and the target. Whether targets are classes or quantities, and one a series or one
    a step, is inferred from the data, unless --kind and --per are given. Series are split, never
    steps.
    """
    given: dict[str, Any] = {
        "rates": _numbers("--learning-rate", learning_rate),
        "noises": _numbers("--noise", noise),
        "starts": None if start is None else tuple(start.replace(" ", "").split(",")),
        "hidden": hidden,
        "seconds": seconds(time),
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    search = Search(cells=cells(cell), networks=networks, **chosen)
    prepared = Preparation(missing, spacing, lengths)  # type: ignore[arg-type]
    read = table.read(data, kind, per, prepared)
    tested: float | Any = test_share
    if test is not None:
        per = "step" if read.per_step else "series"
        tested = table.read(test, read.kind, per, read.preparation)
    with whole_folder(output, force) as folder:
        console = Console(stderr=True)
        console.print(
            f"{data}: {read.count} series of up to {read.lengths.max()} steps, {read.inputs} "
            f"inputs, {read.outputs} {'outputs' if read.classes is None else 'classes'}",
            soft_wrap=True,
        )
        with RunsProgress(console) as progress:
            fitted = fit_sequences(
                read,
                recipe,
                search,
                test=tested,
                validation=validation_share,
                name=data.stem,
                seed=seed,
                folder=folder / "runs",
                on_record=_shown(progress, recipe.budget.validate_every),
                jobs=jobs,
            )
        write_outcome(fitted, folder)
        if (folder / "runs").exists():  # an interrupted search leaves none
            write_report([folder / "runs"], folder / "report.html", f"Fitting {data.stem}")
    if as_json:
        print(json.dumps(outcome(fitted) | {"output": str(output)}))
    else:
        say(Console(highlight=False, soft_wrap=True), fitted, output)


def seconds(text: str | None) -> float | None:
    """The time that "60s", "10m", "1.5h" or "90" says, in seconds."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    if found is None or float(found[1]) == 0:
        raise InvalidArgument(f"--time is {text!r}; it must be a time such as 60s, 10m or 1h")
    return float(found[1]) * SECONDS[found[2]]


def _numbers(name: str, text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f"{name} is {text!r}; it must be numbers with commas") from None


def _shown(progress: RunsProgress, validate_every: int) -> OnRecord:
    """A row for the search and one for each final run."""
    rows: dict[str, Callable[[dict[str, Any]], None]] = {}
    epochs: Counter[str] = Counter()

    def show(name: str, last_epoch: int, record: dict[str, Any]) -> None:
        if name not in rows:
            rows[name] = progress.row(name, last_epoch)
        epochs[name] += validate_every
        rows[name](record | {"epoch": min(epochs[name], last_epoch)})

    return show


def say(console: Console, fitted: Fitted, output: Path) -> None:
    """Print the outcome in words."""
    if fitted.run.stopped == "interrupted":
        console.print("Interrupted: this is the best network so far.")
    task, score, found, net = fitted.task, fitted.score, fitted.diagnosis, fitted.model
    train = task.parts.train
    what = "R²" if train.classes is None else "accuracy"
    part = "Test" if task.parts.test is not None else "Validation"
    figures = "{:.3f}" if train.classes is None else "{:.1%}"
    value, low, high = (figures.format(x) for x in (score.value, score.low, score.high))
    console.print(
        f"{part} {what} [bold]{value}[/bold] (95 % interval {low} to {high}, {score.sequences} "
        f"series; a constant guess scores {figures.format(task.constant_guess)}).",
        markup=True,
    )
    counts = train.class_counts()
    if counts and max(counts.values()) > UNEVEN * min(counts.values()):
        rarest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
        console.print(
            f"Classes are uneven: {most!r} has {counts[most]} training targets, {rarest!r} "
            f"{counts[rarest]}. Mean accuracy over classes: {score.balanced:.1%}.",
        )
    chosen = fitted.chosen
    console.print(
        f"{train.count} training series of {train.lengths.min()} to {train.lengths.max()} steps; "
        f"{net.hidden} units, {net.parameters} parameters; {chosen} out of "
        f"{len(fitted.trials)} trials; best network from epoch {fitted.run.best_epoch}; "
        f"{fitted.seconds:.1f} s."
    )
    console.print(str(found))
    reasons = sieve_reasons(fitted)
    total = sum(reasons.values()) or 1
    said = ", ".join(f"{Reason[name]} {count / total:.0%}" for name, count in reasons.items())
    console.print(f"The sieve corrected {fitted.run.corrected:.1%} of the updates ({said}).")
    if (output / "report.html").exists():
        console.print(f"Report: {output / 'report.html'}")
    console.print(
        f"Next: gradsieve export {output / NETWORK} --format c -o {output.name}.h", markup=False
    )
