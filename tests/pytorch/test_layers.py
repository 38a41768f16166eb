"""The kernel's layers against the readable ones, which serve any cell and device."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gradsieve as gs
from gradsieve.torch.evidence.change import change_deltas
from gradsieve.torch.evidence.double_backward import double_backward
from gradsieve.torch.evidence.gather import Measured, gather
from gradsieve.torch.evidence.kernel_layer import KernelLayer
from gradsieve.torch.evidence.layer import PythonLayer
from gradsieve.torch.evidence.recursion import Deltas
from gradsieve.torch.evidence.slope import q_gradient
from gradsieve.torch.kernel_bridge import without_kernel
from gradsieve.torch.modules.record import Recorder
from gradsieve.torch.modules.stack import find_stacks

T, B, INPUTS, H = 11, 4, 2, 20
KINDS = {
    "tanh": (nn.RNN, {}),
    "two relu layers": (nn.RNN, {"nonlinearity": "relu", "num_layers": 2}),
    "gru": (nn.GRU, {"bias": False}),
    "two gru layers": (nn.GRU, {"num_layers": 2}),
    "lstm": (nn.LSTM, {}),
    "bidirectional tanh": (nn.RNN, {"bidirectional": True, "num_layers": 3}),
    "bidirectional gru": (nn.GRU, {"bidirectional": True, "num_layers": 2}),
    "bidirectional lstm": (nn.LSTM, {"bidirectional": True, "num_layers": 2}),
}
ROUGH = {torch.float32: 1e-4, torch.float64: 1e-9}


def measured_of(kind: str, dtype: torch.dtype, end: int, policy: str, scale: float = 1) -> Measured:
    """Of one call, into whose step `end` come gradients of very different size, and one of zero."""
    torch.manual_seed(0)
    make, settings = KINDS[kind]
    module = make(INPUTS, H, **settings).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(scale)
    recorder = Recorder(find_stacks(module))
    u = torch.randn(T, B, INPUTS).to(dtype)
    outputs = module(u)[0]
    sizes = torch.tensor([[1e-6], [0.0], [1.0], [1e4]], dtype=dtype)
    (outputs[end] * torch.randn(outputs.shape[1:]).to(dtype) * sizes).sum().backward()
    ((stack, calls),) = recorder.finished().items()
    return gather(stack, calls, gs.Sieve(policy).at_work(), together=False)


def layers_of(measured: Measured):
    return [layer for one in measured.carried for layer in one.layers.values()]


def values(deltas: Deltas) -> Tensor:
    return torch.ldexp(deltas.delta.double(), deltas.exponents[..., None, None])


@pytest.mark.parametrize("dtype", ROUGH)
@pytest.mark.parametrize("end", [-1, 6])
@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_deltas_and_their_change_are_those_of_the_readable_layers(kind, frozen, end, dtype):
    found = []
    for kernel in (True, False):
        with contextlib.nullcontext() if kernel else without_kernel():
            measured = measured_of(kind, dtype, end, "skip")
        kinds = {type(layer) for layer in layers_of(measured)}
        assert kinds == {KernelLayer if kernel else PythonLayer}
        torch.manual_seed(1)
        update = {
            place: {name: torch.randn_like(weight) for name, weight in own.items()}
            for place, own in measured.weights.items()
        }
        for one in measured.carried:
            change_deltas(one, update, frozen)
        found.append(
            [
                (values(layer.deltas), values(layer.changed), layer.by_inputs())
                for layer in layers_of(measured)
            ]
        )
    for one, truth in zip(*found, strict=True):
        for fast, slow in zip(one[:2], truth[:2], strict=True):
            scale = slow.abs().amax((0, 2, 3), keepdim=True)  # of each example
            assert ((fast - slow).abs() <= 10 * ROUGH[dtype] * scale).all()


@pytest.mark.parametrize("dtype", ROUGH)
@pytest.mark.parametrize("end", [-1, 6])
@pytest.mark.parametrize("policy", ["hold", "steer"])
@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_those_of_the_double_backward(kind, policy, end, dtype):
    measured = measured_of(kind, dtype, end, policy)
    sieve = gs.Sieve(policy).at_work()
    truths = double_backward(measured.transports[0], measured, sieve)
    for one, truth in zip(q_gradient(measured, sieve, together=False), truths, strict=True):
        scale = float(truth.abs().max())
        torch.testing.assert_close(one, truth, rtol=ROUGH[dtype], atol=ROUGH[dtype] * scale)


@pytest.mark.parametrize("kind", ["tanh", "two gru layers", "lstm", "bidirectional tanh"])
@pytest.mark.parametrize("scale", [0.02, 3.0])
def test_slopes_are_right_where_deltas_vanish_or_grow(kind, scale):
    sieve = gs.Sieve("hold").at_work()
    found, truths = (
        q_gradient(measured_of(kind, dtype, -1, "hold", scale), sieve, together=False)
        for dtype in (torch.float32, torch.float64)
    )
    for one, truth in zip(found, truths, strict=True):
        tolerance = 1e-3 * float(truth.abs().max())
        torch.testing.assert_close(one.double(), truth, rtol=1e-3, atol=tolerance)


def test_what_is_not_finite_stays_with_its_example():
    module = nn.GRU(INPUTS, H)
    recorder = Recorder(find_stacks(module))
    outputs = module(torch.randn(T, B, INPUTS))[0]
    gamma = torch.ones(B, H)
    gamma[1, 2] = torch.nan
    (outputs[-1] * gamma).sum().backward()
    ((stack, calls),) = recorder.finished().items()
    measured = gather(stack, calls, gs.Sieve("hold").at_work(), together=False)
    delta = measured.carried[0].own[0].delta
    assert delta[0, 1].isnan().any()
    assert delta[:, [0, 2, 3]].isfinite().all()
    assert np.isnan(measured.Q)
