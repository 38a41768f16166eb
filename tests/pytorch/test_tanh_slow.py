"""The kernel's slow gradient of one tanh layer, against the double backward that others take."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import gradsieve as gs
from gradsieve.torch.evidence import tanh_slow
from gradsieve.torch.evidence.gather import Measured, gather
from gradsieve.torch.evidence.slope import q_gradient
from gradsieve.torch.modules.record import Recorder
from gradsieve.torch.modules.stack import find_stacks

HOLD = gs.Sieve("hold").at_work()
T, B, INPUTS, H = 15, 4, 2, 20


def measured_of(module: nn.RNN, end: int, gamma: Tensor, *state: Tensor) -> Measured:
    """Of one call, into whose step `end` comes the gradient γ."""
    recorder = Recorder(find_stacks(module))
    u = torch.randn(T, B, INPUTS, dtype=gamma.dtype, generator=torch.Generator().manual_seed(1))
    (module(u, *state)[0][end] * gamma).sum().backward()
    ((stack, calls),) = recorder.finished().items()
    return gather(stack, calls, HOLD, together=False)


@pytest.mark.parametrize("end", [-1, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_is_that_of_the_double_backward(monkeypatch, dtype, end):
    """Of examples that differ in the size of γ by ten powers of ten, and one that has none."""
    torch.manual_seed(0)
    module = nn.RNN(INPUTS, H, dtype=dtype)
    gamma = torch.randn(B, H, dtype=dtype) * torch.tensor([[1e-6], [0.0], [1.0], [1e4]])
    measured = measured_of(module, end, gamma)
    assert tanh_slow.slow_slopes(measured.transports[0], None, 0.7) is not None
    found = q_gradient(measured, HOLD, together=False)
    monkeypatch.setattr(tanh_slow, "slow_slopes", lambda *given: None)
    close = {torch.float32: 1e-4, torch.float64: 1e-9}[dtype]
    for one, truth in zip(found, q_gradient(measured, HOLD, together=False), strict=True):
        torch.testing.assert_close(one, truth, rtol=close, atol=close * float(truth.abs().max()))


@pytest.mark.parametrize(("begun", "usable"), [(0.0, True), (1.0, False)])
def test_it_is_for_layers_that_begin_at_rest(begun, usable):
    measured = measured_of(nn.RNN(INPUTS, H), -1, torch.ones(B, H), torch.full((1, B, H), begun))
    found = tanh_slow.slow_slopes(measured.transports[0], None, 0.7)
    assert (found is not None) == usable
