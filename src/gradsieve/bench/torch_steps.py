"""Training steps in PyTorch: its own modules and ours, with and without the sieve."""

from __future__ import annotations

from collections.abc import Callable

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
        f"{owner} {look}": _step(make, workload, look)
        for owner, make in makers.items()
        if make is not None
        for look in LOOKS
    }


def _step(make: Callable[[int, int], nn.Module], workload: Workload, look: str) -> Step:
    torch.manual_seed(0)
    u, t = torch.from_numpy(workload.u), torch.from_numpy(workload.t)
    recurrent = make(u.shape[2], workload.size.hidden)
    head = nn.Linear(workload.size.hidden, workload.net.outputs)
    model = nn.ModuleList([recurrent, head])
    inner = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    settings = SIEVES[look]
    optimizer = inner if settings is None else gst.Sieve(model, inner, **settings)

    def step() -> None:
        optimizer.zero_grad()
        outputs, _ = recurrent(u)
        torch.autograd.backward(nn.functional.cross_entropy(head(outputs[-1]), t))
        optimizer.step()

    return step
