"""The loop: epochs of minibatches, validation, the best network, checkpoints, the test.

A run is a pure function of the initial network and its `Job`: the minibatches of epoch k come from
a generator that is seeded by (seed, k). So a run that is killed and goes on from its checkpoint
gives bit for bit the result of an undisturbed one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from gradsieve.change import slow_factor
from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.files import sole_owner
from gradsieve.flow import checked_horizon
from gradsieve.network import SRN
from gradsieve.recipe.curriculum import Stage
from gradsieve.training.corrections import finite
from gradsieve.training.data import draw
from gradsieve.training.evaluation import evaluate
from gradsieve.training.job import Job, Run, Stopped, differing
from gradsieve.training.older import OLD_FORMAT
from gradsieve.training.probe import probe
from gradsieve.training.progress import Progress, Tally
from gradsieve.training.record import Checkpoint, RunFolder, versions
from gradsieve.training.roll_back import RollBack
from gradsieve.training.stages import Stages
from gradsieve.training.step import Stepper

OnRecord = Callable[[dict[str, Any]], None]
CHECKPOINT_SECONDS = 10.0


def run_one(
    net: SRN,
    job: Job,
    folder: Path | None = None,
    on_record: OnRecord | None = None,
    stop: threading.Event | None = None,
) -> Run:
    """Train one network, from its checkpoint if the folder has one. See `gradsieve.train`."""
    task = job.task
    if (net.inputs, net.outputs, net.output) != (task.inputs, task.outputs, task.output):
        raise InvalidArgument(
            f"the network has {net.inputs} inputs and {net.outputs} {net.output} outputs; the task "
            f"{task.name} needs {task.inputs} inputs and {task.outputs} {task.output} outputs"
        )
    try:
        training = _Training(net, job)
        with nullcontext() if folder is None else sole_owner(folder, "training"):
            if folder is not None:
                training.open(RunFolder(folder), net)
            return training.run(on_record or (lambda record: None), stop or threading.Event())
    except (MemoryError, OverflowError) as error:
        raise InvalidArgument(
            f"the run needs more memory than there is ({error}); take a smaller batch, fewer "
            "hidden units or shorter sequences"
        ) from error


class _Training:
    def __init__(self, net: SRN, job: Job) -> None:
        self.job, self.recipe = job, job.recipe
        self.stepper = Stepper(net.copy(), job.recipe, job.engine, job.extension)
        self.best = net.copy()
        self.progress = Progress()
        self.history: list[dict[str, Any]] = []
        budget = job.recipe.budget
        self.data = draw(job.task, net, budget.sizes, job.seed)
        self.stages = Stages(job.task, job.recipe, self.data.train, net, job.seed)
        self.roll_back: RollBack | None = None
        if job.recipe.schedule.roll_back is not None:
            times, first = job.recipe.schedule.roll_back, self.stages.now(self.progress).length
            self.roll_back = RollBack(times, self.stepper.descent, first)
        if self.stepper.policy is not None:
            for sequences in self.stages:
                checked_horizon(sequences.u.shape[1], self.stepper.policy.sieve.horizon)
        self.folder: RunFolder | None = None

    def open(self, folder: RunFolder, net: SRN) -> None:
        """Start the folder, or go on from its checkpoint."""
        self.folder = folder
        asked = self.job.described(net)
        stored = folder.read_json("run.json")
        if stored is None:
            folder.refuse_remains()
            folder.remove_leftovers()
            # run.json comes last: a folder that has it has all that going on needs.
            net.save(folder / "initial.safetensors")
            folder.write_json("run.json", {**asked, "versions": versions()})
            return
        if stored.get("format") == OLD_FORMAT:
            raise InvalidFile(
                f"{folder.path}: holds a run that gradsieve 0.1 recorded; this version can report "
                "it, but not go on with it: choose another output folder, or remove this one"
            )
        if names := differing(asked, stored):
            raise InvalidFile(
                f"{folder.path}: holds another run (it differs in {', '.join(names)}); choose "
                "another output folder, or remove this one"
            )
        if not np.array_equal(SRN.load(folder / "initial.safetensors").flat, net.flat):
            raise InvalidFile(f"{folder.path}: holds a run from other initial weights")
        folder.remove_leftovers()
        self._restore(folder, net)

    def _restore(self, folder: RunFolder, net: SRN) -> None:
        stepper, descent = self.stepper, self.stepper.descent
        square = descent.mean_square
        found = folder.load_checkpoint(net.flat, square is not None, self.roll_back is not None)
        if found is None:
            folder.rewind_history(0)
            return
        path = folder / "checkpoint.safetensors"
        self.progress = Progress.read(path, found.progress)
        try:
            stepper.restore(found.sieve)
        except InvalidArgument as error:
            raise InvalidFile(f"{path}: {error}") from error
        descent.net.flat[:] = found.weights
        descent.velocity, stepper.before = found.velocity, found.gradient
        if square is not None and found.mean_square is not None:
            square.values, square.seen = found.mean_square, found.seen
        if self.roll_back is not None and found.refuge is not None:
            self.roll_back.refuge = found.refuge
        self.best.flat[:] = found.best
        self.history = folder.rewind_history(self.progress.epoch, found.history)

    def run(self, on_record: OnRecord, stop: threading.Event) -> Run:
        budget, progress = self.recipe.budget, self.progress
        self.checkpoint = self._snapshot()
        started = saved = time.perf_counter()
        before = progress.seconds
        stopped = self._ended()
        try:
            while stopped == "epochs" and progress.epoch < budget.epochs:
                last = min(progress.epoch + budget.validate_every, budget.epochs)
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
        progress = self.progress
        best = progress.best_accuracy, progress.best_epoch
        return self.recipe.budget.ended(progress.epoch, *best)

    def _epoch(self, tally: Tally, stop: threading.Event) -> None:
        recipe, progress, descent = self.recipe, self.progress, self.stepper.descent
        stage = self.stages.go_on(progress)
        train = self.stages.sequences(stage)
        order = np.random.Generator(np.random.PCG64([self.job.seed, progress.epoch]))
        batch = recipe.curriculum.batch(stage, self.stages.length, recipe.budget.batch)
        try:
            minibatches = order.integers(0, len(train), (recipe.budget.iterations, batch))
        except ValueError as error:  # more than any array holds
            raise MemoryError(f"{recipe.budget.iterations} minibatches of {batch}") from error
        if recipe.optimiser.reset_velocity:
            descent.velocity = np.zeros_like(descent.velocity)
        descent.learning_rate = self._rate(stage)
        descent.applied = None  # a probe must not depend on updates before a checkpoint
        for indices in minibatches:
            if stop.is_set():
                raise KeyboardInterrupt
            tally.outcomes.append(self.stepper.step(*train.batch(indices)))
        progress.epoch += 1

    def _rate(self, stage: Stage) -> float:
        recipe, epoch = self.recipe, self.progress.epoch
        rate = recipe.optimiser.learning_rate * recipe.curriculum.rate(stage, self.stages.length)
        rate = recipe.schedule.rate(rate, epoch, recipe.budget.epochs, epoch - stage.begins)
        return rate if self.roll_back is None else rate * self.roll_back.share_in(stage.length)

    def _validate(self, tally: Tally) -> dict[str, Any]:
        """Measure the network as it is, remember it if it is the best, and record all of it."""
        progress, net, job = self.progress, self.stepper.net, self.job
        record = {"epoch": progress.epoch, "updates": 0, **tally.record()}
        progress.add(tally)
        accuracy, loss = evaluate(net, job.task, self.data.validation, job.engine)
        record |= {"updates": progress.updates, "accuracy": accuracy}
        record["validation_loss"] = finite(loss)
        if (accuracy, -loss) > (progress.best_accuracy, -progress.best_loss):
            progress.best_accuracy, progress.best_loss = accuracy, loss
            progress.best_epoch = progress.epoch
            self.best.flat[:] = net.flat
        record["slow_Q"] = self._slow_Q()
        every = self.recipe.budget.probe_every
        probed = every > 0 and (progress.validations - 1) % every == 0
        seen = asdict(probe(self.stepper, self.data.validation)) if probed else None
        if self.roll_back is not None:
            losses = [outcome.loss for outcome in tally.outcomes]
            stage = self.stages.now(progress).length
            record["rolled_back"] = self.roll_back.look(self.stepper.descent, losses, stage)
        self.stages.go_on_if_learned(progress, net, job.engine)
        record |= {"probe": seen, "seconds": progress.seconds}
        self.history.append(record)
        if self.folder is not None:
            self.folder.append_history(record)
        return record

    def _slow_Q(self) -> float | None:
        """Slow Q of the last minibatch, whatever the policy measures: runs are compared by it."""
        flow = self.stepper.flow
        if flow is None or flow.length < 2:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return finite(slow_factor(flow))

    def _snapshot(self) -> Checkpoint:
        descent = self.stepper.descent
        square = descent.mean_square
        return Checkpoint(
            mean_square=None if square is None else square.values.copy(),
            seen=0 if square is None else square.seen,
            weights=descent.net.flat.copy(),
            velocity=descent.velocity.copy(),
            gradient=self.stepper.before.copy(),
            best=self.best.flat.copy(),
            progress=dict(vars(self.progress)),
            sieve=self.stepper.state(),
            refuge=None if self.roll_back is None else self.roll_back.refuge,
            history="" if self.folder is None else self.folder.history_checksum(),
        )

    def _finish(self, stopped: Stopped) -> Run:
        progress, job = self.progress, self.job
        accuracy, _ = evaluate(self.best, job.task, self.data.test, job.engine)
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
            corrected=progress.corrected / max(1, progress.updates),
            stalls=progress.stalls,
            nonfinite=progress.nonfinite,
            seconds=progress.seconds,
            stopped=stopped,
            recipe=self.recipe,
        )
        if self.folder is not None:
            self.best.save(self.folder / "network.safetensors")
            if stopped != "interrupted":
                self.folder.write_json("result.json", run.result())
        return run
