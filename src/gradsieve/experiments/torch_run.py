"""One run of a study in PyTorch: its own recurrent module, Adam, and `gst.Sieve` around it.

Of the recipe, momentum and `rms_decay` are Adam's two betas, `learning_rate` and `clip` its rate
and the largest norm of the (mean) gradient. A "gaussian" start is PyTorch's own, an "orthogonal"
one `gst.init_` with the task's length as reach. Data, minibatches, validation and the schedule of
the rate are those of the core. A run is short, so one that is killed begins anew.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.execute import Clock, about, at_lengths, best_so_far
from gradsieve.network import Array
from gradsieve.recipe import Recipe
from gradsieve.training import Data, Problem, Stacked
from gradsieve.training.data import draw

EACH = 500  # sequences in one pass of an evaluation
CELLS = {"nn.RNN": nn.RNN, "nn.GRU": nn.GRU, "nn.LSTM": nn.LSTM}


class Network(nn.Module):
    """A recurrent layer and a linear layer, at the last step or at all of them."""

    def __init__(self, cell: str, inputs: int, hidden: int, outputs: int, per_step: bool) -> None:
        super().__init__()
        self.recurrent = CELLS[cell](inputs, hidden)
        self.out = nn.Linear(hidden, outputs)
        self.per_step = per_step

    def forward(self, u: Tensor) -> Tensor:
        states, _ = self.recurrent(u)
        found: Tensor = self.out(states if self.per_step else states[-1])
        return found

    @torch.no_grad()
    def answers(self, u: Array, starts: Array | None) -> Array:
        """Outputs for u (T,B,I), some sequences at a time."""
        parts = np.array_split(u, -(-u.shape[1] // EACH), axis=1)
        found = [self(torch.from_numpy(np.ascontiguousarray(part))) for part in parts]
        return torch.cat(found, dim=-2).numpy()


@dataclass
class Course:
    """A training so far: its validations, and the best of them."""

    clock: Clock = field(default_factory=Clock)
    history: list[dict[str, Any]] = field(default_factory=list)
    best: tuple[float, float] = (-1.0, 0.0)  # accuracy, and minus the loss
    best_epoch: int = 0
    epochs: int = 0
    stopped: str = "epochs"
    nonfinite: int = 0


def execute(config: RunConfig) -> dict[str, Any]:
    """Train the run's network and give its row."""
    torch.set_num_threads(1)
    task, budget = config.condition.problem(), config.recipe.budget
    data = draw(task, config.initial_network(), budget.sizes, config.network)
    if data.train.starts is not None:
        raise InvalidArgument(
            f"{task.name} has unequal lengths; PyTorch's cells here need equal ones"
        )
    net = started(config, task, data.train.per_step)
    adam, sieve = optimizers(net, config.recipe)
    began = time.perf_counter()
    course = trained(config, net, adam, sieve or adam, data)
    counts = {} if sieve is None else dict(sieve.counts)
    if sieve is not None:
        sieve.close()
    updates = course.epochs * budget.iterations
    return about(config) | {
        "test_accuracy": evaluate(net, task, data.test)[0],
        "validation_accuracy": course.best[0],
        "validation_loss": -course.best[1],
        "best_epoch": course.best_epoch,
        "updates": updates,
        "kept": counts.get("kept", updates) / updates,
        "corrected": counts.get("corrected", 0) / updates,
        "stalls": counts.get("stalls", 0),
        "nonfinite": course.nonfinite,
        "seconds": time.perf_counter() - began,
        "stopped": course.stopped,
        "final_Q": None,
        "cpu_ms": course.clock.milliseconds,
        "curve": best_so_far(course.history),
        "at_length": at_lengths(task, net.answers, course.best[0]),
    }


def trained(
    config: RunConfig, net: Network, adam: torch.optim.Optimizer, optimizer: Any, data: Data
) -> Course:
    """Train the network, and leave it with its best weights by validation."""
    recipe, budget, task = config.recipe, config.recipe.budget, config.condition.problem()
    clip = gst.Clip(recipe.optimiser.clip or math.inf, recipe.optimiser.clip_quantile)
    course, best_state = Course(), copy.deepcopy(net.state_dict())
    for epoch in range(1, budget.epochs + 1):
        course.epochs = epoch
        rate = recipe.optimiser.learning_rate
        for group in adam.param_groups:
            group["lr"] = recipe.schedule.rate(rate, epoch - 1, budget.epochs, epoch - 1)
        order = np.random.Generator(np.random.PCG64([config.network, epoch - 1]))
        for indices in order.integers(0, len(data.train), (budget.iterations, budget.batch)):
            course.nonfinite += not learn(net, optimizer, data.train, indices, clip)
        if epoch % budget.validate_every and epoch < budget.epochs:
            continue
        accuracy, loss = evaluate(net, task, data.validation)
        course.history.append({"updates": epoch * budget.iterations, "accuracy": accuracy})
        course.clock(course.history[-1])
        if (accuracy, -loss) > course.best:
            course.best, course.best_epoch = (accuracy, -loss), epoch
            best_state = copy.deepcopy(net.state_dict())
        if budget.stop_at is not None and accuracy > budget.stop_at:
            course.stopped = "solved"
            break
    net.load_state_dict(best_state)
    return course


def optimizers(net: Network, recipe: Recipe) -> tuple[torch.optim.Optimizer, gst.Sieve | None]:
    """Adam, and the recipe's sieve around it."""
    chosen = recipe.optimiser
    betas = chosen.momentum, chosen.rms_decay or 0.999
    adam = torch.optim.Adam(net.parameters(), chosen.learning_rate, betas)
    return adam, None if recipe.sieve is None else gst.Sieve(net, adam, recipe.sieve)


def started(config: RunConfig, task: Problem, per_step: bool) -> Network:
    """The network as PyTorch begins it, or with a reach."""
    torch.manual_seed(config.network)
    net = Network(config.cell, task.inputs, config.hidden, task.outputs, per_step)
    if config.recipe.start.recurrent == "orthogonal":
        gst.init_(net, reach=config.condition.length)
    elif config.recipe.start.recurrent != "gaussian":
        raise InvalidArgument(
            f"start is {config.recipe.start.recurrent!r}; for a PyTorch cell it may be "
            "'orthogonal' or 'gaussian', which is PyTorch's own"
        )
    return net


def learn(net: Network, optimizer: Any, part: Stacked, indices: Array, clip: gst.Clip) -> bool:
    """One update; whether its loss was finite. One that is not is left out, and counted."""
    u, t, _ = part.batch(indices)
    loss = loss_of(net(torch.from_numpy(np.ascontiguousarray(u))), t)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    if not torch.isfinite(loss):
        return False
    clip(net.parameters())
    optimizer.step()
    return True


def loss_of(outputs: Tensor, t: Array) -> Tensor:
    """Mean cross-entropy, or half the mean squared error."""
    targets = torch.from_numpy(np.ascontiguousarray(t))
    if targets.dtype == torch.int64:
        return nn.functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())
    return 0.5 * nn.functional.mse_loss(outputs, targets)


def evaluate(net: Network, task: Problem, part: Stacked) -> tuple[float, float]:
    u, t, starts = part.batch(slice(None))
    outputs = net.answers(u, starts)
    return task.accuracy(outputs, t), float(loss_of(torch.from_numpy(outputs), t))
