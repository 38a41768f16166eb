"""`python -m gradsieve.torch.selfcheck` agrees where all is well, and says what is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gradsieve.torch import selfcheck
from gradsieve.torch.evidence.kernel_layer import KernelLayer


def test_everything_agrees_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert selfcheck.main() == 0
    said = capsys.readouterr().out
    assert "all agree" in said
    assert said.count("\n") > len(selfcheck.MODULES) * len(selfcheck.TOLERANCES)


def test_a_kernel_that_is_wrong_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = KernelLayer.reach

    def wrong(layer: KernelLayer, *given: Any) -> None:
        right(layer, *given)
        layer.deltas.delta[0] *= 1.01

    monkeypatch.setattr(KernelLayer, "reach", wrong)
    monkeypatch.setattr(selfcheck, "MODULES", {"nn.RNN": selfcheck.MODULES["nn.RNN"]})
    assert selfcheck.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "above" in line and " Q " in line]
    assert lines[-1].endswith("disagree")


def test_a_device_that_is_there_gets_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [way.device for way in selfcheck.ways()] == ["cpu", "cpu", "cuda"]
