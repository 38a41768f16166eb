"""`gradsieve fit`: a network for your own sequences."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gradsieve.cli.console import Console
from gradsieve.cli.options import HighestQ, LowestQ
from gradsieve.cli.own_data import (
    FeatureOption,
    KindOption,
    MaxValuesOption,
    PerOption,
    SeriesOption,
    TargetOption,
    TimeOption,
    read_table,
)
from gradsieve.cli.progress import RunsProgress
from gradsieve.data import MAX_VALUES
from gradsieve.fitting import (
    NETWORK,
    Fitted,
    OnRecord,
    Recipe,
    outcome,
    sieve_reasons,
    whole_folder,
    write_outcome,
)
from gradsieve.fitting import fit as fit_sequences
from gradsieve.sieve import safe_range

UNEVEN = 1.5  # largest class over smallest from which imbalance is spoken of


class Sieving(StrEnum):
    off = "off"
    skip = "skip"
    select = "select"
    steer = "steer"
    hold = "hold"


def fit(
    data: Annotated[Path, typer.Argument(help="NPZ, CSV, Parquet or .ts file with sequences.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    test: Annotated[
        Path | None, typer.Option(help="Test on this file instead of a share of DATA.")
    ] = None,
    kind: KindOption = "auto",
    per: PerOption = "auto",
    series: SeriesOption = "series",
    time: TimeOption = None,
    target: TargetOption = None,
    feature: FeatureOption = None,
    hidden: Annotated[
        int | None, typer.Option(help="Hidden units; chosen from the data by default.")
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="For the summed gradient; searched by default.")
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(help="On copies of the training sequences; searched by default."),
    ] = None,
    sieve: Annotated[Sieving, typer.Option(help="What the sieve does.")] = Sieving.steer,
    q_min: LowestQ = None,
    q_max: HighestQ = None,
    clip: Annotated[float, typer.Option(help="Largest norm of a gradient; 0 is none.")] = 1.0,
    momentum: Annotated[float, typer.Option(help="Of the velocity.")] = 0.9,
    batch: Annotated[int, typer.Option(help="Sequences in a minibatch.")] = 10,
    epochs: Annotated[int, typer.Option(help="At most so many epochs.")] = 400,
    patience: Annotated[
        int, typer.Option(help="Stop after so many epochs without a better network.")
    ] = 100,
    initial: Annotated[
        str | None,
        typer.Option(help="identity or gaussian recurrent weights to begin with; both are tried."),
    ] = None,
    networks: Annotated[
        int, typer.Option(help="Initial networks of each kind that the search tries.")
    ] = 1,
    validation_share: Annotated[
        float, typer.Option(help="Share of the series that choose the network.")
    ] = 0.2,
    test_share: Annotated[
        float, typer.Option(help="Share of the series that test it, unless --test is given.")
    ] = 0.2,
    seed: Annotated[int, typer.Option(help="Decides split, initial weights and order.")] = 0,
    jobs: Annotated[int | None, typer.Option(help="Trials at a time; all cores.")] = None,
    max_values: MaxValuesOption = MAX_VALUES,
    force: Annotated[bool, typer.Option("--force", help="Replace the output folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train a small network on your own sequences and say how good it is.

    [bold]gradsieve fit gestures.csv -o gestures[/bold]

    CSV and Parquet are in long form: one row a time step, with columns for the series, the time,
    the features and the target. Classes or quantities, one target a series or one a step: it is
    seen from the data, and can be said. Series are split, never steps.
    """
    recipe = Recipe(
        hidden=hidden,
        learning_rate=learning_rate,
        noise=noise,
        initial=initial,  # type: ignore[arg-type]
        networks=networks,
        sieve=sieve.value,
        q_range=safe_range(sieve.value, q_min, q_max),
        clip=clip or None,
        momentum=momentum,
        batch=batch,
        epochs=epochs,
        patience=patience,
        seed=seed,
    )
    read = read_table(data, kind, per, series, time, target, feature, max_values)
    tested = None
    if test is not None:
        per_read = "step" if read.per_step else "series"
        tested = read_table(test, read.kind, per_read, series, time, target, feature, max_values)
    with whole_folder(output, force) as folder:
        console = Console(stderr=True)
        console.print(
            f"{data}: {read.count} series of up to {read.lengths.max()} steps, {read.inputs} "
            f"inputs, {read.outputs} {'outputs' if read.classes is None else 'classes'}; "
            f"searching by {recipe.trials} short runs",
            soft_wrap=True,
        )
        with RunsProgress(console) as progress:
            fitted = fit_sequences(
                read,
                recipe,
                test_data=tested,
                validation=validation_share,
                test=test_share,
                name=data.stem,
                folder=folder / "runs",
                jobs=jobs,
                on_record=_shown(progress, recipe.trials),
            )
        write_outcome(fitted, folder)
    if as_json:
        print(json.dumps(outcome(fitted) | {"output": str(output)}))
    else:
        say(Console(highlight=False, soft_wrap=True), fitted, output)


def _shown(progress: RunsProgress, trials: int) -> OnRecord:
    """All trials of the search as one row, and each final run as its own."""
    rows: dict[str, Callable[[dict[str, Any]], None]] = {}
    searched = itertools.count(1)

    def show(name: str, last_epoch: int, record: dict[str, Any]) -> None:
        search = not name.startswith("final")
        key = f"search, {trials} trials" if search else name
        if key not in rows:
            rows[key] = progress.row(key, last_epoch * trials if search else last_epoch)
        rows[key](record | {"epoch": next(searched)} if search else record)

    return show


def say(console: Console, fitted: Fitted, output: Path) -> None:
    """The verdict, in words."""
    if fitted.run.stopped == "interrupted":
        console.print("Interrupted: this is the best network so far.")
    task, score, found, net = fitted.task, fitted.score, fitted.diagnosis, fitted.model.net
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
        f"{net.hidden} units, {net.flat.size} parameters; learning rate {chosen.learning_rate:g}, "
        f"noise {chosen.noise:g} and {chosen.initial} initial weights out of "
        f"{len(fitted.trials)} trials; best network from epoch {fitted.run.best_epoch}; "
        f"{fitted.seconds:.1f} s."
    )
    console.print(found.verdict)
    total = sum(sieve_reasons(fitted).values()) or 1
    reasons = ", ".join(
        f"{reason} {count / total:.0%}" for reason, count in sieve_reasons(fitted).items()
    )
    console.print(f"The sieve kept {fitted.run.kept:.1%} of the updates ({reasons}).")
    console.print(f"Report: {output / 'report.html'}")
    console.print(f"Next: gradsieve export {output / NETWORK} --format c -o {output.name}.h")
