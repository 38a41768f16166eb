"""gst.Sieve as an optimizer: what it keeps, what it takes back, and how it says so."""

from __future__ import annotations

import io
import math

import pytest
import torch
from torch import nn

import gradsieve as gs
import gradsieve.torch as gst
from gradsieve.sieve import Reason

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
    "nesterov": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-2, momentum=0.5, centered=True),
    "lbfgs": lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=3),
}
KEEP_ALL = {"policy": "skip", "q_range": (-1e6, 1e6)}
REFUSE_ALL = {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e-300}


class Classifier(nn.Module):
    def __init__(self, recurrent: type[nn.RNNBase] = nn.GRU) -> None:
        super().__init__()
        self.recurrent = recurrent(3, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(u)[0][-1])


def batch(steps: int = 12) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(steps, 5, 3), torch.randint(0, 2, (5,))


def backward(model: nn.Module, data: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    model.zero_grad()
    loss = nn.functional.cross_entropy(model(data[0]), data[1])
    loss.backward()
    return loss


def contents(optimizer: torch.optim.Optimizer) -> bytes:
    """Every parameter and every number of the state, as bytes."""
    buffer = io.BytesIO()
    params = [p.detach() for g in optimizer.param_groups for p in g["params"]]
    state = optimizer.state_dict()
    torch.save([params, state["state"], state["param_groups"]], buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_taken_back_leaves_parameters_and_state_bit_for_bit(name):
    model = Classifier()
    inner = OPTIMIZERS[name](model.parameters())
    optimizer = gst.Sieve(model, inner, **KEEP_ALL)
    data = batch()
    for _ in range(2):  # so that there is a state to restore
        optimizer.step(lambda: backward(model, data))
    optimizer.policy = gs.Sieve(**REFUSE_ALL, on_skip="keep").at_work()
    before = contents(inner)
    optimizer.step(lambda: backward(model, data))
    assert not optimizer.last.keep
    assert optimizer.last.reason is Reason.TOO_LARGE
    assert contents(inner) == before


def _sgd(model: nn.Module, **settings: float) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), **{"lr": 0.05, "momentum": 0.9, **settings})


def test_the_very_first_step_taken_back_leaves_no_state_behind():
    model = Classifier()
    inner = torch.optim.Adam(model.parameters())
    optimizer = gst.Sieve(model, inner, **REFUSE_ALL)
    before = contents(inner)
    backward(model, batch())
    optimizer.step()
    assert not optimizer.last.keep
    assert contents(inner) == before


@pytest.mark.parametrize("name", ["sgd", "adam", "adamw", "rmsprop"])
def test_kept_steps_are_those_of_the_plain_optimizer(name):
    data = [batch() for _ in range(4)]
    found = []
    for wrap in (False, True):
        torch.manual_seed(0)
        model = Classifier(nn.LSTM)
        optimizer = OPTIMIZERS[name](model.parameters())
        if wrap:
            optimizer = gst.Sieve(model, optimizer, **KEEP_ALL)
        for one in data:
            backward(model, one)
            optimizer.step()
        found.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_in_a_vanished_network_exactly_the_updates_that_let_the_gradient_grow_are_kept():
    model = Classifier(nn.RNN)
    optimizer = gst.Sieve(
        model, _sgd(model, momentum=0.0), "skip", q_range=(-0.1, 0.1), stall_after=10**6
    )
    seen = set()
    for _ in range(60):
        backward(model, batch())
        optimizer.step()
        verdict = optimizer.last
        if verdict.Q > 0.1:
            assert verdict.keep == (verdict.dS > 0)
            seen.add(verdict.keep)
        elif verdict.Q >= -0.1:
            assert verdict.keep
            assert math.isnan(verdict.dS)  # nothing depended on it
    assert seen == {True, False}
    counts = optimizer.counts
    assert counts["kept"] + counts["skipped"] == counts["steps"] == 60


def test_schedulers_closures_and_parameter_groups_work_as_without():
    model = Classifier()
    inner = torch.optim.SGD(
        [
            {"params": model.recurrent.parameters(), "lr": 0.1},
            {"params": model.head.parameters(), "lr": 0.2},
        ],
        lr=0.3,
    )
    optimizer = gst.Sieve(model, inner, **KEEP_ALL)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    data = batch()
    loss = optimizer.step(lambda: backward(model, data))
    scheduler.step()
    assert loss.item() > 0
    assert [group["lr"] for group in optimizer.param_groups] == [0.05, 0.1]
    assert inner.param_groups[0]["lr"] == 0.05
    assert isinstance(optimizer, torch.optim.Optimizer)


@pytest.mark.parametrize("recurrent", [nn.RNN, nn.LSTM])
def test_steering_turns_the_predicted_Q_back_by_the_steer_rate(recurrent):
    """The measured change of ln(near/far) after a steered step is what was asked for."""
    torch.set_default_dtype(torch.float64)
    model, data = Classifier(recurrent), batch()
    rate = 1e-4
    optimizer = gst.Sieve(
        model,
        _sgd(model, lr=1e-9),
        "steer",
        q_range=(-0.1, 0.1),
        steer_rate=rate,
        limit=math.inf,
    )
    looking = gst.Sieve(model, _sgd(model, lr=0.0), **KEEP_ALL)
    fixed = torch.randn(5, 6)

    def gradient_at_the_last_step() -> None:
        model.zero_grad()
        (model.recurrent(data[0])[0][-1] * fixed).sum().backward()

    gradient_at_the_last_step()
    optimizer.step()
    assert optimizer.last.keep
    assert optimizer.last.reason is Reason.VANISHED_CORRECTED
    assert optimizer.counts["corrected"] == 1
    looking.recorder.forget()
    gradient_at_the_last_step()
    looking.step()
    change = -math.log(10) * (looking.last.Q - optimizer.last.Q)
    assert change == pytest.approx(rate, rel=1e-2)


def test_steering_holds_Q_where_plain_training_lets_it_go():
    finals = {}
    for policy in ("skip", "steer"):
        torch.manual_seed(0)
        model = Classifier(nn.RNN)
        settings = {"q_range": (-1e6, 1e6)} if policy == "skip" else {"q_range": (-1.0, 1.0)}
        optimizer = gst.Sieve(
            model, _sgd(model, lr=1e-3), policy=policy, steer_rate=0.1, limit=3.0, **settings
        )
        for _ in range(120):
            backward(model, batch())
            optimizer.step()
        finals[policy] = optimizer.last.Q
    assert finals["skip"] > 2
    assert finals["steer"] < 1.3


@pytest.mark.parametrize("policy", ["steer", "hold"])
def test_a_step_whose_Q_is_not_a_number_is_not_steered_but_left_out(policy):
    model = Classifier(nn.RNN)
    optimizer = gst.Sieve(model, _sgd(model), policy=policy)
    before = contents(optimizer.optimizer)
    (calls,) = optimizer.recorder.calls.values()
    backward(model, batch())
    calls[0].gradients["outputs"][-1, 0, 0] = math.nan  # while the weights' gradient is finite
    optimizer.step()
    assert not optimizer.last.keep
    assert optimizer.last.reason is Reason.NOT_FINITE
    assert contents(optimizer.optimizer) == before


def test_every_bounds_how_often_steps_are_judged():
    model = Classifier()
    optimizer = gst.Sieve(model, _sgd(model), every=4, **KEEP_ALL)
    reasons = []
    for _ in range(8):
        backward(model, batch())
        optimizer.step()
        reasons.append(optimizer.last.reason)
    assert optimizer.counts["judged"] == 2
    assert [reason is Reason.NOT_LOOKED_AT for reason in reasons] == ([False] + [True] * 3) * 2


def test_a_stall_is_said_and_broken_with_the_velocity_forgotten():
    model = Classifier()
    inner = _sgd(model)
    optimizer = gst.Sieve(model, inner, stall_after=3, **REFUSE_ALL)
    data = batch()
    for _ in range(2):
        backward(model, data)
        optimizer.step()
        assert not optimizer.last.keep
    before = [p.detach().clone() for p in model.parameters()]
    backward(model, data)
    with pytest.warns(UserWarning, match="3 steps in a row"):
        optimizer.step()
    assert optimizer.last.keep
    assert optimizer.last.reason is Reason.STALL_BROKEN
    assert optimizer.counts["stalls"] == 1
    for parameter, old in zip(model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter.detach(), old - 0.05 * parameter.grad)


@pytest.mark.parametrize(("on_skip", "factor"), [("keep", 1.0), ("decay", 0.9), ("reset", 0.0)])
def test_on_skip_says_what_becomes_of_the_velocity(on_skip, factor):
    model = Classifier()
    inner = _sgd(model)
    optimizer = gst.Sieve(model, inner, on_skip=on_skip, **KEEP_ALL)
    backward(model, batch())
    optimizer.step()
    velocity = inner.state[model.head.weight]["momentum_buffer"].clone()
    optimizer.policy = gs.Sieve(**REFUSE_ALL, on_skip=on_skip).at_work()
    backward(model, batch())
    optimizer.step()
    assert not optimizer.last.keep
    assert torch.equal(inner.state[model.head.weight]["momentum_buffer"], factor * velocity)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_is_never_applied(bad):
    model = Classifier()
    optimizer = gst.Sieve(model, torch.optim.Adam(model.parameters()), **KEEP_ALL)
    before = contents(optimizer.optimizer)
    backward(model, batch())
    model.head.bias.grad[0] = bad
    optimizer.step()
    assert not optimizer.last.keep
    assert optimizer.last.reason is Reason.NOT_FINITE
    assert contents(optimizer.optimizer) == before


@pytest.mark.usefixtures("float64")
def test_clipping_between_backward_and_step_changes_the_update_that_is_judged():
    found = []
    for limit in (1e9, 1e-3):
        torch.manual_seed(0)
        model = Classifier()
        optimizer = gst.Sieve(model, _sgd(model), "skip", q_range=(-1e6, 1e6), max_change=1e9)
        backward(model, batch())
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), limit))
        optimizer.step()
        found.append((norm, optimizer.last.relative))
    (norm, whole), (_, clipped) = found
    assert clipped == pytest.approx(whole * 1e-3 / norm, rel=1e-3)


def test_a_mixed_precision_loop_with_a_grad_scaler_is_judged_and_survives_an_overflow():
    model = Classifier(nn.GRU)
    optimizer = gst.Sieve(model, _sgd(model), "skip", q_range=(-1e6, 1e6), max_change=1e9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    data = batch()

    def loop(spoil: bool) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(data[0]), data[1])
        scaler.scale(loss).backward()
        if spoil:
            model.head.bias.grad[0] = math.inf
        scaler.step(optimizer)
        scaler.update()

    loop(spoil=False)
    verdict = optimizer.last
    assert verdict.keep
    assert math.isfinite(verdict.Q + verdict.relative)
    loop(spoil=True)
    assert optimizer.counts["steps"] == 1  # GradScaler left the step out
    loop(spoil=False)
    assert optimizer.counts["steps"] == 2
    # In float32 and without a scale: the same but for bfloat16's rounding.
    plain = Classifier(nn.GRU)
    plain.load_state_dict(model.state_dict())
    looking = gst.Sieve(plain, _sgd(plain, lr=0.0), **KEEP_ALL)
    loop(spoil=False)
    plain.zero_grad()
    nn.functional.cross_entropy(plain(data[0]), data[1]).backward()
    looking.step()
    assert pytest.approx(looking.last.Q, abs=0.02) == optimizer.last.Q


def test_a_checkpoint_resumes_bit_for_bit_and_loads_as_weights_only():
    data = [batch() for _ in range(12)]

    def fresh() -> tuple[nn.Module, gst.Sieve]:
        torch.manual_seed(0)
        model = Classifier(nn.RNN)
        return model, gst.Sieve(
            model,
            torch.optim.Adam(model.parameters(), lr=0.01),
            "skip",
            q_range=(-0.3, 0.3),
            every=2,
        )

    def train(model: nn.Module, optimizer: gst.Sieve, some: list) -> None:
        for one in some:
            backward(model, one)
            optimizer.step()

    model, optimizer = fresh()
    train(model, optimizer, data)
    first, half = fresh()
    train(first, half, data[:5])
    buffer = io.BytesIO()
    torch.save({"model": first.state_dict(), "optimizer": half.state_dict()}, buffer)
    buffer.seek(0)
    saved = torch.load(buffer, weights_only=True)
    second, rest = fresh()
    second.load_state_dict(saved["model"])
    rest.load_state_dict(saved["optimizer"])
    train(second, rest, data[5:])
    assert all(
        torch.equal(a, b) for a, b in zip(model.parameters(), second.parameters(), strict=True)
    )
    assert rest.counts == optimizer.counts
    assert optimizer.counts["skipped"] > 0


def test_a_checkpoint_of_the_plain_optimizer_can_be_loaded():
    model = Classifier()
    plain = torch.optim.Adam(model.parameters())
    backward(model, batch())
    plain.step()
    optimizer = gst.Sieve(model, torch.optim.Adam(model.parameters()))
    optimizer.load_state_dict(plain.state_dict())
    assert optimizer.counts["steps"] == 0
    assert len(optimizer.state) == len(list(model.parameters()))


def test_two_recurrent_modules_have_a_verdict_each_and_both_must_keep():
    model = nn.ModuleDict({"first": nn.GRU(3, 4), "second": nn.LSTM(4, 4)})
    optimizer = gst.Sieve(model, _sgd(model), **KEEP_ALL)
    model["second"](model["first"](torch.randn(9, 2, 3))[0])[0][-1].sum().backward()
    optimizer.step()
    assert set(optimizer.verdicts) == {"first", "second"}
    assert optimizer.last in optimizer.verdicts.values()
