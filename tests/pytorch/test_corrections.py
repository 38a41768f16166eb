"""Corrections belong to the step: they go with its rate, and what is learned stays learned."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import gradsieve as gs
import gradsieve.torch as gst

OPTIMIZERS = {
    "SGD": lambda p, lr: torch.optim.SGD(p, lr=lr, momentum=0.9),
    "Adam": lambda p, lr: torch.optim.Adam(p, lr=lr),
}
POLICIES = ("auto", "hold", "steer")
CLASSES, LENGTH = 4, 12


class Reader(nn.Module):
    """Says at the end which symbol came first."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.RNN(CLASSES + 1, 16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, u: Tensor) -> Tensor:
        return self.head(self.recurrent(u)[0][-1])


def batch(size: int = 16) -> tuple[Tensor, Tensor]:
    first = torch.randint(0, CLASSES, (size,))
    u = nn.functional.one_hot(first, CLASSES + 1).float().repeat(LENGTH, 1, 1)
    u[1:] = nn.functional.one_hot(torch.tensor(CLASSES), CLASSES + 1).float()
    return u, first


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    u, first = batch()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(u), first).backward()
    optimizer.step()


def acting(
    model: nn.Module, inner: torch.optim.Optimizer, policy: str, **settings: float
) -> gst.Sieve:
    """A sieve that has seen the gradient in its range and now calls it vanished at every look."""
    optimizer = gst.Sieve(model, inner, policy, q_range=(-99, 99))
    rates = [group["lr"] for group in inner.param_groups]
    for group in inner.param_groups:
        group["lr"] = 0.0
    step(model, optimizer)
    for group, rate in zip(inner.param_groups, rates, strict=True):
        group["lr"] = rate
    optimizer.policy = gs.Sieve(policy, q_range=(-99, -98), **settings).at_work()
    while optimizer.recorder.listening is False:  # until the next look
        step(model, optimizer)
    return optimizer


def weights(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.recurrent.parameters()).detach().clone()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_with_a_rate_of_zero_no_weight_moves(name, policy):
    model = Reader()
    optimizer = acting(model, OPTIMIZERS[name](model.parameters(), 1e-2), policy, steer_rate=1)
    step(model, optimizer)
    assert optimizer.counts["corrected"] > 0
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for _ in range(5):
        step(model, optimizer)
    for parameter, old in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_with_a_falling_rate_corrections_fall(name, policy):
    """A correction is the difference between a step with the sieve and the same one without.

    The steer rate is more than any of these steps could make, so that each is corrected to its
    limit.
    """
    lengths = []
    for rate in (1e-3, 1e-4, 1e-5):
        moved = []
        for correct in (True, False):
            torch.manual_seed(0)
            model = Reader()
            optimizer = acting(
                model, OPTIMIZERS[name](model.parameters(), rate), policy, steer_rate=99
            )
            if not correct:
                optimizer.policy = gs.Sieve(policy, q_range=(-99, 99)).at_work()
            before = weights(model)
            torch.manual_seed(1)
            step(model, optimizer)
            moved.append(weights(model) - before)
            assert optimizer.last.reason.corrected == correct
        correction = float((moved[0] - moved[1]).norm())
        assert 0 < correction <= 1.01 * optimizer.sieve.limit * float(moved[1].norm())
        lengths.append(correction)
    assert lengths[0] > 5 * lengths[1] > 25 * lengths[2]


def solved(seed: int) -> Reader:
    torch.manual_seed(seed)
    model = Reader()
    nn.init.orthogonal_(model.recurrent.weight_hh_l0)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(150):
        step(model, optimizer)
    assert accuracy(model) == 1.0
    return model


def accuracy(model: nn.Module) -> float:
    u, first = batch(64)
    with torch.no_grad():
        return float((model(u).argmax(1) == first).float().mean())


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_solved_network_stays_solved(name, policy):
    """Although the range calls its gradient vanished, and the rate falls to nothing."""
    model = solved(seed=1)
    optimizer = acting(model, OPTIMIZERS[name](model.parameters(), 1e-3), policy)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 0.9**n)
    for _ in range(60):
        step(model, optimizer)
        schedule.step()
    assert accuracy(model) == 1.0
    assert optimizer.counts["corrected"] > 0


def test_the_buffer_of_sgd_holds_a_correction_as_it_holds_a_step():
    """So the next step makes μ times what this one made, correction included."""
    model = Reader()
    inner = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.5)
    optimizer = acting(model, inner, "hold")
    for parameter in model.parameters():
        inner.state[parameter]["momentum_buffer"].zero_()
    before = weights(model)
    step(model, optimizer)
    assert optimizer.last.reason.corrected
    moved = weights(model) - before
    before = weights(model)
    for parameter in model.parameters():
        parameter.grad.zero_()
    inner.step()
    torch.testing.assert_close(weights(model) - before, 0.5 * moved, rtol=1e-3, atol=1e-8)


def test_frozen_weights_are_not_corrected():
    model = Reader()
    frozen = model.recurrent.weight_hh_l0.requires_grad_(False)
    before = frozen.clone()
    optimizer = acting(model, torch.optim.Adam(model.parameters(), lr=1e-2), "hold")
    step(model, optimizer)
    assert optimizer.last.reason.corrected
    assert torch.equal(frozen, before)


def test_while_everything_recurrent_is_frozen_steps_are_plain_ones():
    model = Reader()
    model.recurrent.requires_grad_(False)
    optimizer = gst.Sieve(model, torch.optim.SGD(model.parameters(), lr=1e-2), "hold")
    before = model.head.weight.detach().clone()
    for _ in range(3):
        step(model, optimizer)
    assert optimizer.last.reason is gs.Reason.NOT_LOOKED_AT
    assert not torch.equal(model.head.weight, before)
    model.recurrent.requires_grad_(True)
    step(model, optimizer)
    assert optimizer.counts["judged"] == 1


def test_a_gradient_of_zero_is_said_to_be_none():
    model = Reader()
    optimizer = gst.Sieve(model, torch.optim.SGD(model.parameters(), lr=1e-2))
    (0 * model(batch()[0]).sum()).backward()
    with pytest.warns(UserWarning, match="no gradient arrives"):
        optimizer.step()


def test_a_step_that_leads_back_by_itself_is_not_corrected():
    model = Reader()
    optimizer = acting(model, torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9), "hold")
    optimizer.policy = gs.Sieve("hold", q_range=(-99, -98), limit=math.inf).at_work()
    torch.manual_seed(1)
    step(model, optimizer)
    corrected = optimizer.counts["corrected"]
    slower = gs.Sieve("hold", q_range=(-99, -98), steer_rate=0.01)  # 0.9 · 0.02 is carried on
    optimizer.policy = slower.at_work()
    torch.manual_seed(1)
    step(model, optimizer)
    assert optimizer.last.reason is gs.Reason.VANISHED_GROWS
    assert optimizer.last.relative == pytest.approx(0.9 * 0.02, rel=0.2)
    assert optimizer.counts["corrected"] == corrected


def test_the_sieve_says_which_steps_it_corrected_and_knows_it_from_a_checkpoint():
    model = Reader()
    inner = torch.optim.Adam(model.parameters(), lr=1e-3)
    optimizer = acting(model, inner, "hold", steer_rate=1)
    assert str(optimizer.corrections) == "changed no update"
    before = optimizer.counts["steps"]
    for _ in range(3):
        step(model, optimizer)
    optimizer.policy = gs.Sieve("hold", q_range=(-99, 99)).at_work()
    step(model, optimizer)
    found = optimizer.corrections
    assert (found.corrected, found.first, found.last) == (3, before, before + 3)
    said = f"corrected 100 % of updates between {before} and {before + 3}"
    assert str(found) == said
    assert said in repr(optimizer)
    again = gst.Sieve(model, inner, "hold")
    again.load_state_dict(optimizer.state_dict())
    assert again.corrections == found
