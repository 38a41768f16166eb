"""The loop: epochs of minibatches, validation, the best network, checkpoints, the test.

A run is a pure function of the initial network, the task and the settings: the minibatches of
epoch k come from a generator that is seeded by (seed, k), so that a run which is killed and goes
on from its checkpoint gives bit for bit what an undisturbed one gives.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.files import sole_owner
from gradsieve.flow import horizon_within
from gradsieve.network import SRN
from gradsieve.training.data import Task, draw, draw_stage
from gradsieve.training.evaluation import evaluate
from gradsieve.training.probe import look
from gradsieve.training.progress import Progress, Tally, finite
from gradsieve.training.record import FORMAT, Checkpoint, RunFolder, versions
from gradsieve.training.retreat import Retreat
from gradsieve.training.settings import Settings
from gradsieve.training.step import Stepper

Stopped = Literal["epochs", "solved", "patience", "interrupted"]
CHECKPOINT_SECONDS = 10.0


@dataclass(frozen=True)
class Run:
    """A finished run."""

    test_accuracy: float
    validation_accuracy: float
    validation_loss: float
    history: list[dict[str, Any]]  # per validation: loss, accuracy, Q, dS, kept, reasons, stalls…
    network: SRN  # the best by validation: what the test accuracy is of
    final: SRN
    best_epoch: int
    updates: int
    kept: float
    stalls: int
    nonfinite: int
    seconds: float
    stopped: Stopped
    settings: Settings

    def result(self) -> dict[str, Any]:
        """The outcome in numbers, as result.json holds it."""
        left_out = ("history", "network", "final", "settings")
        kept = {name: value for name, value in vars(self).items() if name not in left_out}
        best = ("validation_accuracy", "validation_loss")  # not finite before any validation
        return kept | {name: finite(kept[name]) for name in best}


def run_one(
    net: SRN,
    task: Task,
    settings: Settings,
    folder: Path | None = None,
    about: dict[str, Any] | None = None,
    on_record: Callable[[dict[str, Any]], None] | None = None,
    stop: threading.Event | None = None,
    stepper: Callable[[SRN, Settings], Stepper] = Stepper,
) -> Run:
    """Train one network, from its checkpoint if the folder has one. See `gradsieve.train`.

    `about` goes into run.json for whoever compares runs: `label` is what the method is called,
    `network` which initial weights these are, `variance` what they were drawn with. `stepper` makes
    what treats each minibatch, for a method that is not a policy of the sieve.
    """
    if (net.inputs, net.outputs, net.output) != (task.inputs, task.outputs, task.output):
        raise InvalidArgument(
            f"the network has {net.inputs} inputs and {net.outputs} {net.output} outputs; the task "
            f"{task.name} needs {task.inputs} inputs and {task.outputs} {task.output} outputs"
        )
    training = _Training(net, stepper(net.copy(), settings), task, settings, folder)
    with nullcontext() if folder is None else sole_owner(folder, "training"):
        training.begin(net, about or {})
        return training.run(on_record or (lambda record: None), stop or threading.Event())


class _Training:
    def __init__(
        self,
        net: SRN,
        stepper: Stepper,
        task: Task,
        settings: Settings,
        folder: Path | None,
    ) -> None:
        self.task, self.settings, self.stepper = task, settings, stepper
        self.best = net.copy()
        self.progress = Progress()
        self.history: list[dict[str, Any]] = []
        self.retreat: Retreat | None = None
        if settings.retreat is not None:
            self.retreat = Retreat(settings.retreat, stepper, settings.stage_in(0))
        self.data = draw(task, net, settings.sizes, settings.seed)
        self.stages = {
            length: draw_stage(task, net, length, settings.sizes[0], settings.seed)
            for length, _ in settings.stages
        }
        if settings.sieve is not None:
            for sequences in (self.data.train, *self.stages.values()):
                horizon_within(sequences.u.shape[1], settings.sieve.horizon)
        self.folder = RunFolder(folder) if folder is not None else None

    def begin(self, net: SRN, about: dict[str, Any]) -> None:
        if self.folder is not None:
            self._open(self.folder, net, about)
        self.checkpoint = self._snapshot()

    def _open(self, folder: RunFolder, net: SRN, about: dict[str, Any]) -> None:
        """Start the folder, or go on from what it holds."""
        asked = {"format": FORMAT, **about, **describe(net, self.task, self.settings)}
        stored = folder.read_json("run.json")
        if stored is None:
            folder.refuse_remains()
            folder.remove_leftovers()
            # run.json comes last: a folder that has it has all that going on needs.
            net.save(folder / "initial.safetensors")
            folder.write_json("run.json", {**asked, "versions": versions()})
            return
        stored = _completed(stored)
        differing = [key for key, value in asked.items() if stored.get(key) != value]
        if differing:
            raise InvalidFile(
                f"{folder.path}: holds another run (it differs in {', '.join(differing)}); choose "
                "another output folder, or remove this one"
            )
        if not np.array_equal(SRN.load(folder / "initial.safetensors").flat, net.flat):
            raise InvalidFile(f"{folder.path}: holds a run from other initial weights")
        folder.remove_leftovers()
        scaling = self.stepper.scaling
        found = folder.load_checkpoint(net.flat, scaling is not None, self.retreat is not None)
        if found is None:
            folder.rewind_history(0)
            return
        self.progress = Progress.read(folder / "checkpoint.safetensors", found.progress)
        self.stepper.net.flat[:] = found.weights
        self.stepper.velocity = found.velocity
        self.stepper.skipped_in_a_row = self.progress.skipped_in_a_row
        if scaling is not None and found.mean_square is not None:
            scaling.mean_square, scaling.seen = found.mean_square, found.seen
        if self.retreat is not None and found.refuge is not None:
            self.retreat.refuge = found.refuge
        self.best.flat[:] = found.best
        self.history = folder.rewind_history(self.progress.epoch, found.history)

    def run(self, on_record: Callable[[dict[str, Any]], None], stop: threading.Event) -> Run:
        settings, progress = self.settings, self.progress
        started = saved = time.perf_counter()
        before = progress.seconds
        stopped = self._ended()
        try:
            while stopped == "epochs" and progress.epoch < settings.epochs:
                last = min(progress.epoch + settings.validate_every, settings.epochs)
                tally = Tally()
                while progress.epoch < last:
                    self._epoch(tally, stop)
                progress.seconds = before + time.perf_counter() - started
                on_record(self._validate(tally))
                self.checkpoint = self._snapshot()
                stopped = self._ended()
                if self.folder is not None and time.perf_counter() - saved > CHECKPOINT_SECONDS:
                    self.folder.save_checkpoint(self.checkpoint)
                    saved = time.perf_counter()
        except KeyboardInterrupt:
            stopped = "interrupted"
            self.progress = Progress(**self.checkpoint.progress)
            self.stepper.net.flat[:] = self.checkpoint.weights
            self.best.flat[:] = self.checkpoint.best
            self.history = [
                record for record in self.history if record["epoch"] <= self.progress.epoch
            ]
        if self.folder is not None:
            self.folder.save_checkpoint(self.checkpoint)
        return self._finish(stopped)

    def _ended(self) -> Stopped:
        """Whether there is a reason to stop before the last epoch."""
        stop_at, patience, progress = self.settings.stop_at, self.settings.patience, self.progress
        if stop_at is not None and progress.best_accuracy > stop_at:
            return "solved"
        if patience is not None and progress.epoch - progress.best_epoch >= patience:
            return "patience"
        return "epochs"

    def _epoch(self, tally: Tally, stop: threading.Event) -> None:
        settings, progress, stepper = self.settings, self.progress, self.stepper
        stage = settings.stage_in(progress.epoch)
        train = self.data.train if stage is None else self.stages[stage]
        order = np.random.Generator(np.random.PCG64([settings.seed, progress.epoch]))
        length = self.data.train.u.shape[1]
        batch = settings.batch_in(progress.epoch, length)
        minibatches = order.integers(0, len(train), (settings.iterations, batch))
        if settings.reset_velocity:
            stepper.velocity = np.zeros_like(stepper.velocity)
        stepper.learning_rate = settings.rate_in(progress.epoch, length)
        if self.retreat is not None:
            stepper.learning_rate *= self.retreat.share_in(stage)
        stepper.applied = None  # else a look inside would depend on what came before a checkpoint
        for indices in minibatches:
            if stop.is_set():
                raise KeyboardInterrupt
            tally.outcomes.append(stepper.step(*train.batch(indices)))
        progress.epoch += 1

    def _validate(self, tally: Tally) -> dict[str, Any]:
        """Measure the network as it is, remember it if it is the best, and record all of it."""
        progress, net = self.progress, self.stepper.net
        record = {"epoch": progress.epoch, "updates": 0, **tally.record()}
        kept = sum(outcome.verdict.keep for outcome in tally.outcomes)
        progress.updates += len(tally.outcomes)
        progress.kept += kept
        progress.stalls += record["stalls"]
        progress.nonfinite += record["nonfinite"]
        progress.skipped_in_a_row = self.stepper.skipped_in_a_row
        progress.validations += 1
        accuracy, loss = evaluate(net, self.task, self.data.validation, self.settings)
        record |= {"updates": progress.updates, "accuracy": accuracy}
        record["validation_loss"] = finite(loss)
        if (accuracy, -loss) > (progress.best_accuracy, -progress.best_loss):
            progress.best_accuracy, progress.best_loss = accuracy, loss
            progress.best_epoch = progress.epoch
            self.best.flat[:] = net.flat
        every = self.settings.probe_every
        probed = every > 0 and (progress.validations - 1) % every == 0
        probe = (
            look(self.stepper, self.data.validation, self.settings).as_dict() if probed else None
        )
        if self.retreat is not None:
            losses = [outcome.loss for outcome in tally.outcomes]
            stage = self.settings.stage_in(progress.epoch - 1)
            record["retreated"] = self.retreat.look(self.stepper, losses, stage)
        record |= {"probe": probe, "seconds": progress.seconds}
        self.history.append(record)
        if self.folder is not None:
            self.folder.append_history(record)
        return record

    def _snapshot(self) -> Checkpoint:
        scaling = self.stepper.scaling
        return Checkpoint(
            mean_square=None if scaling is None else scaling.mean_square.copy(),
            seen=0 if scaling is None else scaling.seen,
            weights=self.stepper.net.flat.copy(),
            velocity=self.stepper.velocity.copy(),
            best=self.best.flat.copy(),
            progress=dict(vars(self.progress)),
            refuge=None if self.retreat is None else self.retreat.refuge,
            history="" if self.folder is None else self.folder.history_checksum(),
        )

    def _finish(self, stopped: Stopped) -> Run:
        progress = self.progress
        accuracy, _ = evaluate(self.best, self.task, self.data.test, self.settings)
        run = Run(
            test_accuracy=accuracy,
            validation_accuracy=progress.best_accuracy,
            validation_loss=progress.best_loss,
            history=self.history,
            network=self.best,
            final=self.stepper.net,
            best_epoch=progress.best_epoch,
            updates=progress.updates,
            kept=progress.kept / max(1, progress.updates),
            stalls=progress.stalls,
            nonfinite=progress.nonfinite,
            seconds=progress.seconds,
            stopped=stopped,
            settings=self.settings,
        )
        if self.folder is not None:
            self.best.save(self.folder / "network.safetensors")
            if stopped != "interrupted":
                self.folder.write_json("result.json", run.result())
        return run


def _completed(stored: dict[str, Any]) -> dict[str, Any]:
    """A run of an older version, with what it meant by settings that it did not know yet."""
    names = {item.name for item in dataclasses.fields(Settings)}
    known = {name: value for name, value in stored.items() if name in names}
    try:
        return stored | Settings.from_dict(known).as_dict()
    except (InvalidArgument, TypeError, ValueError, KeyError):
        return stored  # it will differ, and that will be said


def describe(net: SRN, task: Task, settings: Settings) -> dict[str, Any]:
    """What decides a run's result, as JSON."""
    plain = {
        "task": task.name,
        "length": getattr(task, "length", None),
        "convention": getattr(task, "convention", None),
        "tolerance": getattr(task, "tolerance", None),
        "chance": task.constant_guess,
        "inputs": net.inputs,
        "hidden": net.hidden,
        "outputs": net.outputs,
        "output": net.output,
        "dtype": str(net.dtype),
    }
    return plain | settings.as_dict()
