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


def main(rank: int, directory: Path, policy: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{directory}/meet", rank=rank, world_size=2
    )
    torch.manual_seed(0)
    model = nn.RNN(3, 6, dtype=torch.float64)
    parallel = DistributedDataParallel(model)
    optimizer = gst.Sieve(
        parallel,
        torch.optim.SGD(parallel.parameters(), lr=0.05, momentum=0.9),
        q_range=(-0.2, 0.2),
        max_change=0.3,
        policy=policy,
    )
    u = torch.randn(10, 20, 8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    found = []
    for batch in u:
        optimizer.zero_grad()
        # The ranks see different examples, of different size of gradient.
        outputs, _ = parallel(batch[:, rank::2])
        ((1 + 9 * rank) * outputs[-1]).square().sum().backward()
        optimizer.step()
        last = optimizer.last
        found.append([last.keep, last.reason, last.Q, last.dS])
    weights = torch.cat([p.detach().reshape(-1) for p in model.parameters()]).tolist()
    (directory / f"{rank}.json").write_text(json.dumps([found, weights]))
    distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
