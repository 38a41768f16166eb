"""`gradsieve reproduce`: the paper's figures and tables, computed, stored and written down."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from gradsieve.cli.console import Console
from gradsieve.cli.study_progress import StudyProgress
from gradsieve.errors import InvalidArgument
from gradsieve.experiments import record
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.runner import Watch, run_all
from gradsieve.experiments.store import Store, sole_writer
from gradsieve.experiments.study import Places, Scope, Study

FOLDER = Path("runs/reproduce")
THIS_CLUSTER = "auto"  # the Ray instance that runs on this machine


class Name(StrEnum):
    """A study of `gradsieve.experiments.studies`, or all of them."""

    figure1 = "figure1"
    figure2 = "figure2"
    agreement = "agreement"
    table1 = "table1"
    ablation = "ablation"
    rescue = "rescue"
    beyond = "beyond"
    trials = "trials"
    leave_it_on = "leave-it-on"
    anchors = "anchors"
    all = "all"


class ReproduceCommand(TyperCommand):
    """`--ray` may stand without an address, for which Typer has no option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_address(args))


def with_address(words: Sequence[str]) -> list[str]:
    """The words, with the cluster of this machine after each `--ray` that has no address."""
    said: list[str] = []
    for place, word in enumerate(words):
        said.append(word)
        after = "".join(words[place + 1 : place + 2])
        if word == "--ray" and (not after or after.startswith("-") or after in set(Name)):
            said.append(THIS_CLUSTER)
    return said


def reproduce(
    study: Annotated[Name, typer.Argument(help="Study to run.")] = Name.all,
    networks: Annotated[int, typer.Option(min=1, help="Networks in each condition.")] = 10,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of 50 updates.")] = 2000,
    tasks: Annotated[
        list[str] | None, typer.Option(help="Only these tasks, by their names in the tables.")
    ] = None,
    lengths: Annotated[list[int] | None, typer.Option(help="Only these lengths.")] = None,
    arms: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these arms, or trials, by their names in the tables, e.g. clipping."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs at a time; this machine's cores by default.")
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Run on a Ray cluster: the one at this address, without one that of this machine; "
            "'local' starts one.",
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Store and checkpoints; the same command goes on from them.")
    ] = FOLDER,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Tables and figures; FOLDER/results.")
    ] = None,
    from_record: Annotated[
        list[Path] | None,
        typer.Option(help="Go on from the rows of this CSV file, e.g. results/runs.csv."),
    ] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Folder for TensorBoard event files of the runs.")
    ] = None,
    write_only: Annotated[
        bool, typer.Option(help="Compute nothing: write tables and figures of the stored runs.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Print how many runs are done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --status: as JSON.")] = False,
) -> None:
    """Re-create the paper's figures and tables, and further ones that it lacks.

    Stop it at any moment, by any means: the same command goes on. All studies take a day on two
    cores. A small study takes a minute:

    [bold]gradsieve reproduce table1 --networks 2 --epochs 5[/bold]
    """
    from gradsieve.experiments.studies import ARMS, STUDIES, TASKS

    for option, asked, known in (("tasks", tasks, TASKS), ("arms", arms, sorted(ARMS))):
        unknown = set(asked or ()) - set(known)
        if unknown:
            raise InvalidArgument(f"--{option}: {', '.join(unknown)}; it may be {', '.join(known)}")
    scope = Scope(tuple(tasks or ()), tuple(lengths or ()), networks, epochs, tuple(arms or ()))
    chosen = list(STUDIES.values()) if study is Name.all else [STUDIES[study.value]]
    console = Console(stderr=True)
    path_of_store = folder / "store.sqlite"
    # A question changes nothing: neither the store, nor whether there is one.
    store = Store.snapshot(path_of_store) if status else Store(path_of_store)
    for path in from_record or ():
        count = record.read_csv(path, store)
        console.print(f"{path}: {count} rows")
    if status:
        _say_status(chosen, scope, store, as_json)
        return
    places = Places(folder, output or folder / "results", jobs or os.cpu_count() or 1)
    if ray is not None:
        console.print(f"Looking for Ray ({ray}) …")
    # The stored rows can be written while another process still computes.
    with nullcontext() if write_only else sole_writer(folder):
        for one in chosen:
            if not write_only:
                with StudyProgress(console, one.name, folder) as progress:
                    watch: Watch = progress.watch
                    if tensorboard is not None:
                        watch = _both(watch, _events(tensorboard, folder))
                    while missing := store.missing(one.plan(scope, store)):
                        progress.begin(missing)
                        run_all(missing, store, folder, jobs, ray, watch)
                        watch([])
            console.print(f"{one.name}: writing {places.output}")
            one.write(scope, store, places)
    console.print(f"Tables and figures are in {places.output}")


def _events(tensorboard: Path, folder: Path) -> Watch:
    from gradsieve.cli.study_events import StudyEvents

    return StudyEvents(tensorboard, folder).watch


def _both(first: Watch, second: Watch) -> Watch:
    def watch(running: Sequence[RunConfig]) -> None:
        first(running)
        second(running)

    return watch


def _say_status(chosen: Sequence[Study], scope: Scope, store: Store, as_json: bool) -> None:
    held = len(store.items())
    report: dict[str, dict[str, int]] = {}
    needed: set[str] = set()
    for study in chosen:
        planned = {config.key: config for config in study.plan(scope, store)}
        missing = len(store.missing(planned.values()))
        report[study.name] = {"known_runs": len(planned), "missing": missing}
        needed |= set(planned)
    if as_json:
        print(json.dumps(report))
        return
    for name, counts in report.items():
        done = counts["known_runs"] - counts["missing"]
        print(f"{name}: {done} of {counts['known_runs']} runs that are planned so far are done")
    other = held - sum(config.key in needed for config, _ in store.items())
    if other:
        print(
            f"{store.path} holds {other} other runs: give --status the options of their study, "
            "such as its --networks and --epochs"
        )
