"""DistributedDataParallel: two real processes come to one verdict and stay equal."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from two_processes import begun

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
