"""Run by test_distributed.py in two processes: DistributedDataParallel with the sieve."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gradsieve.torch as gst


def main(rank: int, directory: Path) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=2
    )
    found = {policy: train(rank, policy) for policy in ("skip", "steer", "hold")}
    found["watched by rank 0"] = watched(rank)
    found["agreement"] = agreement(rank)
    (directory / f"{rank}.json").write_text(json.dumps(found))
    distributed.destroy_process_group()
    # DistributedDataParallel, with or without a sieve, keeps Gloo's threads alive beyond this, and
    # now and then one of them aborts the interpreter while that is taken down: so it is not.
    os._exit(0)


def begun(policy: str, wrap=lambda model: model) -> tuple:
    """A model, the same as it is called, the sieve around it, and minibatches."""
    torch.manual_seed(0)
    model = nn.RNN(3, 6, dtype=torch.float64)
    called = wrap(model)
    inner = torch.optim.SGD(called.parameters(), lr=0.002)
    optimizer = gst.Sieve(called, inner, q_range=(-0.2, 0.2), policy=policy)
    u = torch.randn(10, 20, 8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return model, called, optimizer, u


def train(rank: int, policy: str) -> list:
    model, parallel, optimizer, u = begun(policy, DistributedDataParallel)
    verdicts = []
    for batch in u:
        optimizer.zero_grad()
        # The ranks see different examples, of different size of gradient.
        outputs, _ = parallel(batch[:, rank::2])
        ((1 + 9 * rank) * outputs[-1]).sin().sum().backward()
        optimizer.step()
        last = optimizer.last
        verdicts.append([last.keep, last.reason.name, last.Q, last.dS])
    return [verdicts, torch.cat([p.detach().reshape(-1) for p in model.parameters()]).tolist()]


def watched(rank: int) -> list:
    """A monitor in one process alone: it must wait for nobody, and sees its own minibatch."""
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.GRU(3, 6)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    look = gst.watch(model, optimizer, every=1) if rank == 0 else None
    readings = []
    u = torch.randn(4, 12, 8, 3, generator=torch.Generator().manual_seed(1))
    for batch in u:
        optimizer.zero_grad()
        outputs, _ = model(batch[:, rank::2])
        outputs[-1].square().sum().backward()
        if look is not None:
            readings.append(look.read())
        optimizer.step()
    return readings


def agreement(rank: int) -> float:
    """Of processes whose gradients are not averaged, and so differ."""
    module = nn.RNN(3, 6)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.1)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-3))
    for _ in range(11):  # the last of them is looked at
        optimizer.zero_grad()
        u = torch.randn(9, 4, 3, generator=torch.Generator().manual_seed(rank))
        (module(u)[0][-1] if rank else module(u)[0][-1] * torch.randn(6)).sum().backward()
        optimizer.step()
        module.zero_grad()
    return optimizer.state_dict()["gradsieve"]["learning"][""]["agreement"]


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(int(sys.argv[1]), Path(sys.argv[2]))
