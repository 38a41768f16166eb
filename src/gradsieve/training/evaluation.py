"""How good a network is on sequences: its accuracy, and its loss per target."""

from __future__ import annotations

import math

import numpy as np

from gradsieve.flow import Engine, predict
from gradsieve.network import SRN, Array
from gradsieve.training.data import Problem, Stacked


def evaluate(net: SRN, task: Problem, part: Stacked, engine: Engine) -> tuple[float, float]:
    """Accuracy, and loss per target, over the steps that belong to these sequences."""
    u, t, starts = part.batch(slice(None))
    outputs = predict(net, u, engine, starts, part.per_step)
    if part.per_step and starts is not None:
        active = np.arange(len(u))[:, None] >= starts
        outputs, t = outputs[active], t[active]
    with np.errstate(over="ignore", invalid="ignore"):
        loss = mean_loss(net, outputs, t)
    return task.accuracy(outputs, t), math.inf if math.isnan(loss) else loss


def mean_loss(net: SRN, outputs: Array, t: Array) -> float:
    """Cross-entropy, or half the squared error, per target."""
    if net.output == "softmax":
        chosen = np.take_along_axis(outputs, t[..., None], axis=-1)
        return float(-np.log(np.maximum(chosen, np.finfo(outputs.dtype).tiny)).mean())
    return float(0.5 * ((outputs - t) ** 2).sum(axis=-1).mean())
