"""Training of GRU and LSTM networks on a person's sequences, by PyTorch.

The layer is `gradsieve.torch`'s GRU or LSTM, Adam takes the steps, and `gradsieve.torch.Sieve`
stands around it as the recipe says. The recipe's `learning_rate`, `momentum` and `rms_decay` are
Adam's rate and its two betas; `clip`, schedule, budget and sieve mean the same as for tanh
units. A step's loss is the mean over its minibatch. Only this file and `_gated_parts` import
PyTorch.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument
from gradsieve.export import Portable, from_torch
from gradsieve.fitting._gated_parts import Part, modules
from gradsieve.fitting._gated_run import Beginning, GatedCell, GatedRun
from gradsieve.fitting._task import OwnTask, with_noisy_copies
from gradsieve.network import Array
from gradsieve.recipe import Recipe
from gradsieve.sieve import Reason
from gradsieve.training.corrections import finite
from gradsieve.training.job import Stopped
from gradsieve.training.older import FORMAT
from gradsieve.training.record import RunFolder, versions

SECOND_BETA = 0.999  # Adam's own, where the recipe has no `rms_decay`
AT_ONCE = 256  # sequences that are validated together
OnRecord = Callable[[dict[str, Any]], None]


def train_gated(
    begin: Beginning,
    task: OwnTask,
    recipe: Recipe,
    seed: int,
    on_record: OnRecord,
    stop: threading.Event,
    folder: Path | None = None,
) -> GatedRun:
    """Train one network; `seed` decides the minibatches. The result depends on nothing more."""
    run = _Training(begin, task, recipe, seed).run(on_record, stop)
    if folder is not None:
        _write(RunFolder(folder), run, begin, task, seed)
    return run


def _write(folder: RunFolder, run: GatedRun, begin: Beginning, task: OwnTask, seed: int) -> None:
    """The run as `gradsieve report` reads it."""
    about = asdict(begin) | {"format": FORMAT, "task": task.name, "length": task.length}
    about |= {"label": f"{begin.cell}, {begin.start}", "network": begin.seed, "seed": seed}
    about |= {"chance": task.constant_guess, "inputs": task.inputs, "outputs": task.outputs}
    folder.write_json("run.json", about | {"recipe": run.recipe.as_dict(), "versions": versions()})
    for record in run.history:
        folder.append_history(record)
    run.network.save(folder / "network.safetensors")
    result = {name: value for name, value in vars(run).items()
              if name not in ("history", "network", "recipe")}  # fmt: skip
    folder.write_json("result.json", result | {"test_accuracy": run.network.score(task.tested)})


class _Training:
    def __init__(self, begin: Beginning, task: OwnTask, recipe: Recipe, seed: int) -> None:
        if recipe.schedule.roll_back is not None or recipe.optimiser.rms_bound is not None:
            raise InvalidArgument(
                f"roll_back and rms_bound are for tanh cells; leave them out for {begin.cell} "
                "cells, or take cell 'tanh'"
            )
        self.task, self.recipe, self.seed = task, recipe, seed
        train = with_noisy_copies(task.scaling.scaled(task.parts.train), task.noise)
        self.train, self.held = Part(train), Part(task.scaling.scaled(task.parts.validation))
        self.recurrent, self.head = modules(begin, train)
        self.optimizer = self._optimizer()
        chosen = recipe.optimiser
        self.clip = gst.Clip(chosen.clip or math.inf, chosen.clip_quantile)
        self.best = self._network(begin.cell)
        self.cell: GatedCell = begin.cell

    def _optimizer(self) -> Any:
        chosen, model = self.recipe.optimiser, nn.ModuleList([self.recurrent, self.head])
        betas = (chosen.momentum, chosen.rms_decay or SECOND_BETA)
        adam = torch.optim.Adam(model.parameters(), lr=chosen.learning_rate, betas=betas)
        return adam if self.recipe.sieve is None else gst.Sieve(model, adam, self.recipe.sieve)

    def _network(self, cell: GatedCell) -> Portable:
        """The weights as they are."""
        train = self.task.parts.train
        network = from_torch(
            self.recurrent,
            self.head,
            cell=cell,
            output=train.output,
            classes=train.classes,
            inputs=train.features,
            per="step" if train.per_step else "series",
        )
        return replace(
            network,
            scaling=self.task.scaling,
            equal_lengths=train.equal_lengths,
            preparation=train.preparation,
            longest=int(train.lengths.max()),
        )

    def run(self, on_record: OnRecord, stop: threading.Event) -> GatedRun:
        budget, began = self.recipe.budget, time.perf_counter()
        best = (-math.inf, math.inf, 0)
        history: list[dict[str, Any]] = []
        counted: Counter[str] = Counter()
        stopped: Stopped = "epochs"
        for epoch in range(budget.epochs):
            tally = self._epoch(epoch, stop)
            counted += tally
            if stop.is_set():
                stopped = "interrupted"
                if history or not counted["updates"]:
                    break
            elif (epoch + 1) % budget.validate_every and epoch + 1 < budget.epochs:
                continue
            accuracy, loss = self._validated()
            history.append(
                {
                    "epoch": epoch + 1,
                    "updates": counted["updates"],
                    "loss": None,
                    "slow_Q": self._slow_Q(),
                    "seconds": time.perf_counter() - began,
                }
                | _shares(tally)
                | {"accuracy": accuracy, "validation_loss": finite(loss)}
            )
            on_record(history[-1])
            if (accuracy, -loss) > (best[0], -best[1]):
                best, self.best = (accuracy, loss, epoch + 1), self._network(self.cell)
            if stopped == "epochs":
                stopped = budget.ended(epoch + 1, best[0], best[2])
            if stopped != "epochs":
                break
        shares = _shares(counted)
        del shares["reasons"]
        return GatedRun(
            validation_accuracy=best[0],
            validation_loss=best[1],
            history=history,
            network=self.best,
            best_epoch=best[2],
            updates=counted["updates"],
            seconds=time.perf_counter() - began,
            stopped=stopped,
            recipe=self.recipe,
            **shares,
        )

    def _epoch(self, epoch: int, stop: threading.Event) -> Counter[str]:
        """Train on the minibatches of one epoch, and count the outcomes."""
        recipe, budget = self.recipe, self.recipe.budget
        rate = recipe.schedule.rate(recipe.optimiser.learning_rate, epoch, budget.epochs, epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        order = np.random.Generator(np.random.PCG64([self.seed, epoch]))
        drawn = order.integers(0, self.train.count, (budget.iterations, budget.batch))
        tally: Counter[str] = Counter()
        for chosen in drawn:
            if stop.is_set():
                break
            tally.update(self._step(chosen))
        return tally

    def _step(self, chosen: Array) -> dict[str, int]:
        self.optimizer.zero_grad()
        loss = self._loss(self.train, chosen)
        loss.backward()  # type: ignore[no-untyped-call]
        parameters = [*self.recurrent.parameters(), *self.head.parameters()]
        norm = self.clip(parameters)
        if not math.isfinite(norm):
            return {"updates": 1, "nonfinite": 1, Reason.NOT_FINITE.name: 1}
        self.optimizer.step()
        if self.recipe.sieve is None:
            return {"updates": 1, "kept": 1, Reason.NO_SIEVE.name: 1}
        verdict = self.optimizer.last
        return {
            "updates": 1,
            "kept": int(verdict.keep),
            "corrected": int(verdict.reason.corrected),
            "stalls": int(verdict.reason is Reason.STALL_BROKEN),
            verdict.reason.name: 1,
        }

    def _slow_Q(self) -> float | None:
        """Of the last look, where the policy measures it."""
        return None if self.recipe.sieve is None else finite(self.optimizer.last.Q)

    def _outputs(self, part: Part, chosen: Array) -> tuple[Tensor, Tensor]:
        """The network's outputs for these sequences, and their targets."""
        index = torch.from_numpy(chosen)
        lengths = part.lengths[index]
        longest = int(lengths.max())
        states = self.recurrent(part.u[index, :longest])[0]
        if part.per_step:
            inside = torch.arange(longest) < lengths[:, None]
            return self.head(states[inside]), part.t[index, :longest][inside]
        last = states[torch.arange(len(index)), lengths - 1]
        return self.head(last), part.t[index]

    def _loss(self, part: Part, chosen: Array) -> Tensor:
        """Cross-entropy or half the squared error, the mean over the targets."""
        y, t = self._outputs(part, chosen)
        return cross_entropy(y, t) if t.dim() == 1 else 0.5 * (y - t).square().sum(1).mean()

    def _validated(self) -> tuple[float, float]:
        """Accuracy (or R²) and mean loss on the validation part."""
        said, wanted = [], []
        with torch.no_grad():
            for first in range(0, self.held.count, AT_ONCE):
                chosen = np.arange(first, min(first + AT_ONCE, self.held.count))
                y, t = self._outputs(self.held, chosen)
                said.append(y)
                wanted.append(t)
            y, t = torch.cat(said).double(), torch.cat(wanted)
            if t.dim() == 1:
                loss = float(cross_entropy(y, t))
            else:
                loss = float(0.5 * (y - t).square().sum(1).mean())
        accuracy = self.task.accuracy(y.numpy(), t.numpy())
        return accuracy, loss if math.isfinite(loss) else math.inf


def _shares(tally: Counter[str]) -> dict[str, Any]:
    """The counts of some updates, as a record of a history has them."""
    updates = max(1, tally["updates"])
    reasons = {name: count for name, count in tally.items() if name.isupper()}
    return {
        "kept": tally["kept"] / updates,
        "corrected": tally["corrected"] / updates,
        "stalls": tally["stalls"],
        "nonfinite": tally["nonfinite"],
        "reasons": reasons,
    }
