"""Training steps in PyTorch: its own modules and ours, with and without the sieve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.bench.timing import Step
from gradsieve.bench.workload import MOMENTUM, RATE, SIEVES, Workload

LOOKS = ("plain", "judged", "corrected")


def torch_steps(workload: Workload) -> dict[str, Step]:
    """Plain, judged and corrected steps of PyTorch's module and, if there is one, of ours."""
    name = {"tanh": "RNN"}.get(workload.size.cell, workload.size.cell)
    makers = {"PyTorch": getattr(nn, name), "gst": getattr(gst, name, None)}
    return {
        f"{owner} {look}": training_step(make, workload, SIEVES[look])
        for owner, make in makers.items()
        if make is not None
        for look in LOOKS
    }


def training_step(
    make: Callable[[int, int], nn.Module], workload: Workload, settings: dict[str, Any] | None
) -> Step:
    """A step of a module with a linear head, inside a sieve of these settings or plain."""
    torch.manual_seed(0)
    u, t = torch.from_numpy(workload.u), torch.from_numpy(workload.t)
    recurrent = make(u.shape[2], workload.size.hidden)
    head = nn.Linear(recurrent(u)[0].shape[-1], workload.net.outputs)
    model = nn.ModuleList([recurrent, head])
    inner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    optimizer = inner if settings is None else gst.Sieve(model, inner, **settings)

    def step() -> None:
        optimizer.zero_grad()
        outputs = recurrent(u)[0]
        torch.autograd.backward(nn.functional.cross_entropy(head(outputs[-1]), t))
        optimizer.step()

    return step
