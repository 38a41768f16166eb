"""`gradsieve train`: one network on one of the paper's tasks."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gradsieve import tasks
from gradsieve.cli.console import Console
from gradsieve.cli.options import HighestQ, LowestQ
from gradsieve.cli.progress import RunsProgress, signed
from gradsieve.errors import InvalidArgument
from gradsieve.network import SRN
from gradsieve.report.runs import label_by_settings
from gradsieve.sieve import Sieve, safe_range
from gradsieve.training import Run, Settings, run_one


class TaskName(StrEnum):
    adding = "adding"
    multiplication = "multiplication"
    temporal_order = "temporal_order"
    temporal_order_3bit = "temporal_order_3bit"


class Sieving(StrEnum):
    off = "off"
    frozen = "frozen"
    full = "full"


class Policy(StrEnum):
    skip = "skip"
    select = "select"
    steer = "steer"
    hold = "hold"


def train(
    task: Annotated[TaskName, typer.Argument(help="What to learn.")],
    length: Annotated[int, typer.Option(help="Time steps of a sequence.")] = 100,
    sieve: Annotated[
        Sieving, typer.Option(help="No sieve, the paper's prediction (frozen) or the full one.")
    ] = Sieving.full,
    policy: Annotated[
        Policy,
        typer.Option(
            help="Skip minibatches, select examples, steer along the gradient of Q, or hold the "
            "slow gradient (with --rms-decay 0.999 --clip 1 --learning-rate 1e-3)."
        ),
    ] = Policy.skip,
    q_min: LowestQ = None,
    q_max: HighestQ = None,
    max_change: Annotated[
        float | None, typer.Option(help="r0: the largest relative change of the far norm.")
    ] = None,
    learning_rate: Annotated[float, typer.Option(help="For the summed gradient.")] = 1e-5,
    momentum: Annotated[float, typer.Option(help="Of the velocity.")] = 0.9,
    clip: Annotated[
        float | None, typer.Option(help="Largest norm of the summed gradient; none by default.")
    ] = None,
    rms_decay: Annotated[
        float | None,
        typer.Option(
            help="Scale each weight's gradient by its mean square of this memory before it is "
            "clipped (RMSprop), e.g. 0.999; not by default."
        ),
    ] = None,
    rms_bound: Annotated[
        float | None,
        typer.Option(
            help="In that mean square no gradient counts as more than so many times as long as "
            "usual, e.g. 10: one that explodes decides for thousands of updates else."
        ),
    ] = None,
    warmup: Annotated[
        float | None,
        typer.Option(
            help="The first share of the epochs, over which the rate rises to its whole, e.g. 0.01."
        ),
    ] = None,
    cooldown: Annotated[
        float | None,
        typer.Option(help="The last share of the epochs, over which the rate falls to zero."),
    ] = None,
    retreat: Annotated[
        float | None,
        typer.Option(
            help="Go back to where the loss was lowest, at half the rate, once it is more than so "
            "many times as large, e.g. 6: a few exploded updates undo what was learned else."
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            help="Short sequences first: LENGTH:EPOCHS,… before the task's, e.g. 40:200,100:300."
        ),
    ] = None,
    rate_by_length: Annotated[
        float,
        typer.Option(
            help="In a stage, a rate as much larger as its sequences are shorter, to this power: "
            "1 makes up for what a step does in fewer steps of time, 0 keeps the rate."
        ),
    ] = 0.0,
    batch_by_length: Annotated[
        float,
        typer.Option(
            help="In a stage, minibatches with as many more sequences as these are shorter, to "
            "this power: 1 keeps the cost of an update, 0 the minibatch."
        ),
    ] = 0.0,
    batch: Annotated[int, typer.Option(help="Sequences in a minibatch.")] = 10,
    epochs: Annotated[int, typer.Option(help="At most so many epochs.")] = 2000,
    iterations: Annotated[int, typer.Option(help="Minibatches in an epoch.")] = 50,
    hidden: Annotated[int, typer.Option(help="Hidden units.")] = 100,
    variance: Annotated[float, typer.Option(help="Variance of the initial weights.")] = 0.01,
    gain: Annotated[
        float, typer.Option(help="Factor of the initial recurrent weights; below 1 they contract.")
    ] = 1.0,
    recurrent: Annotated[
        str, typer.Option(help="gaussian or identity: how the recurrent weights begin.")
    ] = "gaussian",
    input_gain: Annotated[
        float, typer.Option(help="Factor of the initial input weights; large ones bend the units.")
    ] = 1.0,
    bias_spread: Annotated[
        float, typer.Option(help="Standard deviation of the initial hidden biases.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Decides initial weights, data and order.")] = 0,
    convention: Annotated[
        str, typer.Option(help="author, pascanu or hochreiter: whose version of the task.")
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
    """Train one network on a task and test the best one by validation.

    [bold]gradsieve train temporal_order --length 50 --sieve full --clip 1 --learning-rate 1e-3
    --epochs 200 -o runs/first[/bold]

    Stop it with Ctrl-C: it ends with what it has, and the same command goes on from there.
    """
    problem = tasks.by_name(task.value, length, convention)  # type: ignore[arg-type]
    chosen = None
    if sieve is not Sieving.off:
        chosen = Sieve(
            q_range=safe_range(policy.value, q_min, q_max),
            max_change=max_change,
            estimator=sieve.value,  # type: ignore[arg-type]
            policy=policy.value,
        )
    settings = Settings(
        sieve=chosen,
        learning_rate=learning_rate,
        momentum=momentum,
        clip=clip,
        rms_decay=rms_decay,
        rms_bound=rms_bound,
        warmup=warmup,
        cooldown=cooldown,
        retreat=retreat,
        stages=_read_stages(stages),
        rate_by_length=rate_by_length,
        batch_by_length=batch_by_length,
        batch=batch,
        epochs=epochs,
        iterations=iterations,
        seed=seed,
    )
    net = (
        SRN.load(initial)
        if initial is not None
        else SRN.random(
            problem.inputs,
            hidden,
            problem.outputs,
            problem.output,
            variance,
            seed,
            gain=gain,
            recurrent=recurrent,  # type: ignore[arg-type]
            input_gain=input_gain,
            bias_spread=bias_spread,
        )
    )
    about: dict[str, object] = {"network": seed}
    if initial is None:
        about |= {"variance": variance, "gain": gain}
        more = {"recurrent": recurrent, "input_gain": input_gain, "bias_spread": bias_spread}
        usual = {"recurrent": "gaussian", "input_gain": 1.0, "bias_spread": 0.0}
        # only what is unusual, so that folders of older versions go on
        about |= {name: value for name, value in more.items() if value != usual[name]}
    console = Console(stderr=True)
    name = f"{task.value} T={length} {label_by_settings(settings.as_dict() | about)}"
    with RunsProgress(console) as progress:
        on_record = progress.row(name, epochs)
        if tensorboard is not None:
            from gradsieve.report.tensorboard import TensorBoardSink

            sink = TensorBoardSink(tensorboard)
            shown = on_record

            def on_record(record: dict[str, object]) -> None:
                shown(record)
                sink(record)

        run = run_one(net, problem, settings, output, about, on_record)
        progress.done(name, epochs, run.stopped)
    if as_json:
        print(json.dumps(run.result() | {"output": str(output) if output else None}))
    else:
        _say(Console(), run, problem.constant_guess, output)


def _read_stages(stages: str | None) -> tuple[tuple[int, int], ...]:
    """The pairs of `--stages`; what they may be, `Settings` says."""
    try:
        pairs = [stage.split(":") for stage in stages.split(",")] if stages else []
        return tuple((int(length), int(epochs)) for length, epochs in pairs)
    except ValueError as error:
        raise InvalidArgument(
            f"--stages: {stages!r}; it must be LENGTH:EPOCHS, several with commas: 40:200,100:300"
        ) from error


def _say(console: Console, run: Run, chance: float, output: Path | None) -> None:
    ending = {
        "epochs": "all epochs done",
        "solved": "solved",
        "patience": "no better network for long",
        "interrupted": "interrupted",
    }
    last = run.history[-1] if run.history else None
    console.print(
        f"Test accuracy [bold]{run.test_accuracy:.2%}[/bold] (a constant guess scores "
        f"{chance:.1%}); best network from epoch {run.best_epoch}; {ending[run.stopped]} after "
        f"{run.updates} updates in {run.seconds:.1f} s.",
        markup=True,
    )
    if last is not None:
        console.print(
            f"Q at the end {signed(last['Q']).strip()}; kept {run.kept:.1%} of the updates; "
            f"{run.stalls} stalls; {run.nonfinite} minibatches not finite."
        )
    backs = sum(record.get("retreated", False) for record in run.history)
    if backs:
        often = "once" if backs == 1 else f"{backs} times"
        console.print(f"Its loss rose so far that it went back {often}.")
    if output is not None:
        told = f"Recorded in {output}; see it with: gradsieve report {output}"
        console.print(told, highlight=False, soft_wrap=True)
