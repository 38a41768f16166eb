"""gst.watch: readings, their schedule, the verdict in words, and the sinks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.errors import GradsieveError
from gradsieve.judgement import Advice, Symptom
from gradsieve.torch.watching.lags import reach


def step(module: nn.Module, steps: int = 40) -> None:
    module.zero_grad()
    module(torch.randn(steps, 4, 3))[0][-1].sum().backward()


def linear_rnn(gain: float, hidden: int = 6) -> nn.RNN:
    """A relu network that multiplies the gradient by `gain` at every step, exactly."""
    module = nn.RNN(3, hidden, nonlinearity="relu")
    with torch.no_grad():
        module.weight_hh_l0.copy_(gain * torch.eye(hidden))
        module.weight_ih_l0.zero_()
        module.bias_hh_l0.fill_(0.1)
        module.bias_ih_l0.zero_()
    return module


def test_a_gradient_that_comes_back_into_the_range_reaches_there():
    seen = [0.0, 0.5, 1.5, 0.9, 2.0]
    assert reach(seen.__getitem__, 4, 1) == 3
    assert reach(lambda lag: math.inf, 40, 1) == 0  # no gradient at all
    assert reach(lambda lag: lag / 10, 333, 12.34) == 123
    assert reach(lambda lag: 0.0, 0, 1) == 0
    assert reach(lambda lag: 0.0, 1, 1) == 1


def slow_Q(gain: float, lag: int) -> float:
    """Of a gradient that is multiplied by `gain` at every step: Hann's mean in closed form."""
    steps = max(1, int(0.7 * (lag + 1)))
    hann = [math.sin(math.pi * (n + 0.5) / steps) ** 2 for n in range(steps)]
    mean = sum(weight * gain ** (lag - n) for n, weight in enumerate(hann)) / sum(hann)
    return -math.log10(mean)


@pytest.mark.parametrize("gain", [0.8, 0.93, 1.0, 1.1])
def test_norms_fall_by_the_known_factor_and_reach_is_where_they_leave_the_range(gain):
    module = linear_rnn(gain)
    look = gst.watch(module, q_range=(-1.0, 1.0))
    step(module)
    reading = look.read()
    logs = look.curves["RNN/layer0"]
    slope = math.log10(gain)
    assert logs == pytest.approx([logs[0] + lag * slope for lag in range(40)], abs=1e-4)
    assert reading["RNN/layer0/Q"] == pytest.approx(-39 * slope, abs=1e-3)
    assert reading["RNN/layer0/gradient/lag_20"] == pytest.approx(20 * slope, abs=1e-3)
    slow = [slow_Q(gain, lag) for lag in range(40)]
    assert reading["RNN/layer0/slow_Q"] == pytest.approx(slow[39], abs=1e-3)
    assert reading["RNN/layer0/reach"] == max(lag for lag in range(40) if slow[lag] <= 1)


@pytest.mark.parametrize(
    ("gain", "symptom"),
    [(0.8, Symptom.VANISHING), (1.0, Symptom.HEALTHY), (1.2, Symptom.EXPLODING)],
)
def test_the_diagnosis_says_so_in_words_with_the_evidence(gain, symptom):
    module = linear_rnn(gain)
    look = gst.watch(module)
    step(module)
    look.read()
    diagnosis = look.diagnosis()
    assert diagnosis.symptoms == (symptom,)
    assert "RNN/layer0: " in str(diagnosis)
    assert "slow Q" in diagnosis.evidence[0]


def test_the_advice_is_not_what_is_done_already():
    module = linear_rnn(0.8)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-4), "hold")
    look = gst.watch(module, optimizer, every=1)
    for advised in (Advice.SIEVE, Advice.SMALLER_STEPS):
        step(module)
        look.read()
        optimizer.step()
        assert look.diagnosis().advice == (advised,)


def test_saturation_is_seen_gate_by_gate():
    module = nn.LSTM(3, 5)
    with torch.no_grad():
        module.bias_hh_l0[5:10] = 30.0  # the forget gate, wide open
    look = gst.watch(module)
    step(module)
    reading = look.read()
    assert reading["LSTM/layer0/saturated/forget"] == 1.0
    assert reading["LSTM/layer0/saturated/cell"] < 0.2
    assert Symptom.SATURATED in look.diagnosis().symptoms


def test_the_share_of_the_update_by_gate_is_that_of_the_weights_change():
    module = nn.GRU(3, 5)
    look = gst.watch(module, every=1)
    step(module)
    assert not any("share" in name for name in look.read())
    with torch.no_grad():
        module.weight_hh_l0[:5] += 0.03  # reset
        module.weight_hh_l0[10:] += 0.04  # new
    step(module)
    reading = look.read()
    shares = [reading[f"GRU/layer0/share/{gate}"] for gate in ("reset", "update", "new")]
    assert shares == pytest.approx([9 / 25, 0.0, 16 / 25], rel=1e-3)


def test_a_loss_no_better_than_a_constant_guess_is_said():
    classes = torch.tensor([0, 0, 0, 1])
    guess = gst.constant_loss(classes)
    assert guess == pytest.approx(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    values = torch.tensor([[1.0], [3.0]])
    assert gst.constant_loss(values) == pytest.approx(1.0)
    module = linear_rnn(1.0)
    look = gst.watch(module, constant_loss=guess, every=1)
    step(module)
    look.read(loss=torch.tensor(guess * 0.999))
    assert look.diagnosis().symptoms == (Symptom.GUESSING,)
    step(module)
    look.read(loss=0.5 * guess)
    assert look.diagnosis().symptoms == (Symptom.HEALTHY,)
    for _ in range(20):
        step(module)
        look.read(loss=0.1 * guess)
    assert look.diagnosis().symptoms == (Symptom.LEARNED,)


def test_the_schedule_bounds_how_often_it_looks_and_what_it_keeps():
    module = nn.GRU(3, 4)
    look = gst.watch(module, every=3)
    seen = []
    for _ in range(6):
        step(module)
        seen.append(bool(look.read()))
        assert not any(look.recorder.calls.values())
    assert seen == [True, False, False, True, False, False]


def test_it_only_looks():
    found = []
    for looking in (False, True):
        torch.manual_seed(0)
        module = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        look = gst.watch(module) if looking else None
        step(module)
        if look is not None:
            names = {name.rsplit("/", 1)[0] for name in look.read() if name.endswith("/Q")}
            assert len(names) == 4 - 2  # outputs[-1] is no last step of the reverse direction
        found.append([p.grad.clone() for p in module.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_closing_takes_the_hooks_off():
    module = nn.GRU(3, 4)
    look = gst.watch(module)
    look.close()
    step(module)
    assert not look.recorder.finished()


def test_reading_before_a_backward_pass_is_an_error():
    look = gst.watch(nn.GRU(3, 4))
    with pytest.raises(GradsieveError, match=r"loss\.backward\(\)"):
        look.read()
    with pytest.raises(GradsieveError, match="nothing was read"):
        look.diagnosis()


def test_a_step_without_a_recurrent_gradient_is_passed_over_later_on():
    module = nn.GRU(3, 4)
    look = gst.watch(module, every=1)
    step(module)
    assert look.read()
    assert look.read() == {}
    step(module)
    assert look.read()


def test_no_gradient_at_all_is_told_from_health():
    module = linear_rnn(1.0)
    with torch.no_grad():
        module.bias_hh_l0.fill_(-1.0)  # every unit is off
    look = gst.watch(module)
    step(module)
    look.read()
    assert look.diagnosis().symptoms[0] is Symptom.NO_GRADIENT


def test_what_is_not_finite_is_counted_and_ends_nothing():
    module = nn.GRU(3, 4)
    look = gst.watch(module, every=1)
    for gain in (1.0, math.nan, math.inf):
        module.zero_grad()
        (gain * module(torch.randn(9, 4, 3))[0][-1].sum()).backward()
        reading = look.read()
    assert reading["not_finite"] == 2
    assert math.isnan(reading["GRU/layer0/slow_Q"])


def norm_of(module: nn.Module) -> float:
    return float(torch.nn.utils.get_total_norm([one.grad for one in module.parameters()]))


def test_how_often_and_how_hard_clipping_bites():
    module = nn.GRU(3, 4)
    norms = []
    look = gst.watch(module, every=4, clip=2.0)
    given = gst.watch(module, every=4, clip=2.0)
    for scale in (1.0, 0.1, 10.0, 20.0, 40.0):
        module.zero_grad()
        (scale * module(torch.randn(9, 4, 3))[0][-1].sum()).backward()
        reading = look.read()
        norms.append(norm_of(module))
        counted = given.read(gradient_norm=torch.nn.utils.clip_grad_norm_(module.parameters(), 2.0))
    assert reading["gradient_norm"] == pytest.approx(norms[-1], rel=1e-5)
    assert reading["clip/share"] == 1.0
    assert reading["clip/factor"] == pytest.approx(2 / norms[-1], rel=1e-5)
    bitten = [norm for norm in norms[1:] if norm > 2]
    assert counted["clip/share"] == len(bitten) / 4  # every step since the first reading
    factors = math.prod(2 / norm for norm in bitten) ** (1 / len(bitten))
    assert counted["clip/factor"] == pytest.approx(factors, rel=1e-5)
    assert counted["gradient_norm/highest"] == pytest.approx(max(norms[1:]), rel=1e-5)


def test_it_says_what_the_sieve_did():
    module = nn.RNN(3, 6)
    optimizer = gst.Sieve(module, torch.optim.Adam(module.parameters(), lr=0.01), "hold")
    look = gst.watch(module, optimizer, every=3)
    for _ in range(4):
        step(module)
        look.read(accuracy=0.5)
        optimizer.step()
    reading = look.last
    assert reading["sieve/steps"] == 3
    assert reading["sieve/corrected"] == optimizer.reasons["VANISHED_CORRECTED"] - 1 > 0
    assert reading["sieve/reason/VANISHED_CORRECTED"] == reading["sieve/corrected"]
    assert reading["learning_rate"] == 0.01
    assert reading["accuracy"] == 0.5


def test_a_watch_with_its_defaults_looks_seldom_enough():
    """A look costs at most five plain steps of any module (docs/pytorch-costs.md)."""
    assert 5 / gst.watch(nn.GRU(3, 4)).every <= 0.02
