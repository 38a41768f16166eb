"""DistributedDataParallel: two real processes come to one verdict and stay equal."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from two_processes import begun

import gradsieve.torch as gst
from gradsieve.torch.evidence.processes import meeting_device

SCRIPT = Path(__file__).with_name("two_processes.py")


def test_two_processes_come_to_the_same_verdicts_as_one_that_sees_all(tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), str(rank), str(tmp_path)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    one, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert alone_watched() == [pytest.approx(reading) for reading in one.pop("watched by rank 0")]
    assert other.pop("watched by rank 0") == []
    assert abs(one["agreement"]) > 0
    assert json.dumps(one) == json.dumps(other)
    for policy in ("skip", "steer", "hold"):
        verdicts, _ = one[policy]
        for mine, expected in zip(verdicts, alone(policy), strict=True):
            assert mine[:2] == [expected.keep, expected.reason.name]
            assert mine[2] == pytest.approx(expected.Q, rel=1e-6)
            if math.isfinite(expected.dS):
                assert mine[3] == pytest.approx(expected.dS, rel=1e-5)
    assert {keep for keep, *_ in one["skip"][0]} == {True, False}
    for policy in ("steer", "hold"):
        assert any("CORRECTED" in reason for _, reason, *_ in one[policy][0])


def alone_watched() -> list[dict[str, float]]:
    """The first rank's minibatches; but the gradient is that of both, as DDP averages it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.GRU(3, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    look = gst.watch(model, optimizer, every=1)
    readings = []
    u = torch.randn(4, 12, 8, 3, generator=torch.Generator().manual_seed(1))
    for batch in u:
        optimizer.zero_grad()
        for rank in (1, 0):
            look.recorder.listening = rank == 0
            model(batch[:, rank::2])[0][-1].square().sum().backward()
        for parameter in model.parameters():
            parameter.grad.mul_(0.5)
        readings.append(look.read())
        optimizer.step()
    return readings


@pytest.mark.parametrize(
    ("backends", "device"),
    [("cpu:gloo,cuda:nccl", "cpu"), ("cpu:gloo,cuda:gloo", "cpu"), ("cuda:nccl", "cuda")],
)
def test_sums_go_where_the_backend_takes_them(monkeypatch, backends, device):
    monkeypatch.setattr(torch.distributed, "get_backend_config", lambda: backends)
    assert meeting_device() == device


def alone(policy: str) -> list:
    """The same training in this process; DDP averages gradients, so the loss is halved."""
    model, _, optimizer, u = begun(policy)
    verdicts = []
    for batch in u:
        optimizer.zero_grad()
        for rank in range(2):
            outputs, _ = model(batch[:, rank::2])
            ((1 + 9 * rank) * outputs[-1]).sin().sum().backward()
        for parameter in model.parameters():
            parameter.grad.mul_(0.5)
        optimizer.step()
        verdicts.append(optimizer.last)
    return verdicts
