"""Sums over all processes of torch.distributed, of numbers that stand on the CPU.

NCCL takes no tensor of the CPU: there they go by way of its own device.
"""

from __future__ import annotations

import torch
import torch.distributed
from torch import Tensor
from torch.distributed import ReduceOp


def over_processes(
    values: Tensor, operation: ReduceOp.RedOpType = torch.distributed.ReduceOp.SUM
) -> Tensor:
    """The sum of a CPU tensor over all processes, or what else `operation` makes of it."""
    there = values.to(meeting_device())
    torch.distributed.all_reduce(there, operation)
    return there.to(values.device)


def meeting_device() -> str:
    """The type of device whose tensors the backends take: "cpu" where they can."""
    backends = str(torch.distributed.get_backend_config())  # such as cpu:gloo,cuda:nccl
    devices = [one.partition(":")[0] for one in backends.split(",")]
    return "cpu" if "cpu" in devices else devices[0]
