"""Corrections that go on with the momentum of the steps: as in the core, kept, decayed, dropped."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gradsieve as gs
import gradsieve.torch as gst
from gradsieve.training import Settings
from gradsieve.training.step import Stepper

STEPS = 12


class FixedHead(Stepper):
    """Around a PyTorch optimizer the head is not known: here it does not learn either."""

    def _gradient(self, flow: gs.Flow) -> np.ndarray:
        gradient = flow.net.like(super()._gradient(flow).copy())
        gradient.w_out[:], gradient.b_out[:] = 0, 0
        return gradient.flat


def twins(dtype: type = np.float64) -> tuple[gs.SRN, nn.RNN, nn.Linear]:
    """A network of the core and the same one of PyTorch, with one bias for its hidden units."""
    net = gs.SRN.random(2, 6, 1, "linear", 0.05, seed=3, dtype=dtype)
    module, head = nn.RNN(2, 6), nn.Linear(6, 1)
    module.bias_hh_l0.requires_grad_(False).zero_()
    with torch.no_grad():
        module.weight_ih_l0.copy_(torch.from_numpy(net.w_in.T))
        module.weight_hh_l0.copy_(torch.from_numpy(net.w_rec.T))
        module.bias_ih_l0.copy_(torch.from_numpy(net.b))
        head.weight.copy_(torch.from_numpy(net.w_out.T))
        head.bias.copy_(torch.from_numpy(net.b_out))
    return net, module, head


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_with_sgd_corrections_are_those_of_the_core(momentum: float) -> None:
    """The core has them in its velocity, PyTorch beside it: the weights are the same."""
    sieve = {"policy": "hold", "q_range": (-9.0, 0.2), "steer_rate": 0.01}
    net, module, head = twins()
    settings = Settings(
        sieve=gs.Sieve(**sieve), learning_rate=1e-2, momentum=momentum, engine="reference"
    )
    stepper = FixedHead(net, settings)
    inner = torch.optim.SGD(module.parameters(), lr=1e-2, momentum=momentum)
    optimizer = gst.Sieve(module, inner, **sieve)
    numbers = np.random.default_rng(0)
    for _ in range(STEPS):
        u, t = numbers.standard_normal((8, 4, 2)), numbers.standard_normal((4, 1))
        stepper.step(u, t, None)
        optimizer.zero_grad()
        error = head(module(torch.from_numpy(u))[0][-1]) - torch.from_numpy(t)
        (0.5 * error.square().sum()).backward()
        optimizer.step()
    assert optimizer.counts["steered"] > 0
    for truth, parameter in (
        (net.w_in.T, module.weight_ih_l0),
        (net.w_rec.T, module.weight_hh_l0),
        (net.b, module.bias_ih_l0),
    ):
        np.testing.assert_allclose(parameter.detach().numpy(), truth, rtol=1e-6, atol=1e-9)


def held(inner: type[torch.optim.Optimizer], **settings: object) -> gst.Sieve:
    """After one corrected step."""
    module = nn.RNN(3, 5)
    optimizer = gst.Sieve(
        module, inner(module.parameters(), lr=1e-4), policy="hold", q_range=(-9.0, -8.0), **settings
    )
    step(optimizer)
    return optimizer


def step(optimizer: gst.Sieve, scale: float = 1.0) -> None:
    optimizer.zero_grad()
    (scale * optimizer.model(torch.ones(10, 2, 3))[0][-1].square().sum()).backward()
    optimizer.step()


def carried(optimizer: gst.Sieve) -> list[torch.Tensor]:
    return list(optimizer.state_dict()["gradsieve"]["carried"].values())


def test_an_optimizer_without_momentum_carries_nothing_on() -> None:
    optimizer = held(torch.optim.SGD, every=2)
    step(optimizer)  # between judged steps: no correction comes to it
    assert optimizer.counts["steered"] == 1
    assert carried(optimizer) == []


def test_between_judged_steps_what_is_left_moves_the_weights_and_decays() -> None:
    optimizer = held(torch.optim.Adam, every=2)
    before = carried(optimizer)
    weights = [parameter.detach().clone() for parameter in optimizer.model.parameters()]
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    step(optimizer)
    for parameter, weight, old, new in zip(
        optimizer.model.parameters(), weights, before, carried(optimizer), strict=True
    ):
        torch.testing.assert_close(new, 0.9 * old)
        torch.testing.assert_close(parameter.detach(), weight + new)


def test_a_step_that_leads_back_by_itself_is_said_to_and_not_corrected() -> None:
    module = nn.RNN(3, 5)
    inner = torch.optim.SGD(module.parameters(), lr=1e-9, momentum=0.9)
    settings = {"policy": "hold", "q_range": (-9.0, -8.0)}
    optimizer = gst.Sieve(module, inner, steer_rate=0.02, **settings)
    step(optimizer)
    assert optimizer.last.reason == "vanished, steered back"
    slower = gst.Sieve(module, inner, steer_rate=0.01, **settings)
    slower.load_state_dict(optimizer.state_dict())
    optimizer.close()
    step(slower)
    assert slower.last.reason == "vanished, grows back"
    assert slower.last.relative == pytest.approx(0.9 * 0.02, rel=0.1)  # what was carried on
    assert slower.counts["steered"] == 1  # the one before


@pytest.mark.parametrize(("on_skip", "factor"), [("keep", 1.0), ("decay", 0.9), ("reset", None)])
def test_on_skip_says_what_becomes_of_it(on_skip: str, factor: float | None) -> None:
    optimizer = held(torch.optim.Adam, on_skip=on_skip)
    before = carried(optimizer)
    step(optimizer, scale=float("nan"))
    after = carried(optimizer)
    assert not optimizer.last.keep
    assert len(after) == (0 if factor is None else len(before))
    for old, new in zip(before, after, strict=factor is not None):
        torch.testing.assert_close(new, factor * old)


def test_a_step_that_is_taken_back_leaves_it_as_it_was() -> None:
    optimizer = held(torch.optim.Adam)
    before = carried(optimizer)
    refusing = gst.Sieve(
        optimizer.model, optimizer.optimizer, policy="hold", q_range=(-9.0, -8.0), max_change=1e-12
    )
    refusing.load_state_dict(optimizer.state_dict())
    optimizer.close()
    step(refusing)
    assert refusing.last.reason == "change too large"
    for old, new in zip(before, carried(refusing), strict=True):
        assert torch.equal(old, new)


def test_frozen_weights_are_not_moved_by_it() -> None:
    optimizer = held(torch.optim.Adam, every=2)
    frozen = optimizer.model.weight_hh_l0
    frozen.requires_grad_(False)
    frozen.grad = None
    before = frozen.clone()
    step(optimizer)
    assert torch.equal(frozen, before)


def test_a_held_training_resumes_bit_for_bit_from_its_checkpoint():
    data = torch.randn(8, 20, 5, 3)

    def fresh() -> tuple[nn.Module, gst.Sieve]:
        torch.manual_seed(0)
        module = nn.LSTM(3, 5)
        return module, gst.Sieve(
            module, torch.optim.Adam(module.parameters()), policy="hold", window=0.5
        )

    def train(module: nn.Module, optimizer: gst.Sieve, some: Tensor) -> None:
        for one in some:
            optimizer.zero_grad()
            module(one)[0][-1].square().sum().backward()
            optimizer.step()

    module, optimizer = fresh()
    train(module, optimizer, data)
    first, half = fresh()
    train(first, half, data[:3])
    buffer = io.BytesIO()
    torch.save([first.state_dict(), half.state_dict()], buffer)
    buffer.seek(0)
    saved, state = torch.load(buffer, weights_only=True)
    second, rest = fresh()
    second.load_state_dict(saved)
    rest.load_state_dict(state)
    train(second, rest, data[3:])
    assert rest.counts == optimizer.counts
    assert optimizer.counts["steered"] > 0
    assert rest.last.Q == optimizer.last.Q
    for one, other in zip(module.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, other)
