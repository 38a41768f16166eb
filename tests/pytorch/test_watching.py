"""gst.watch: readings, their schedule, the verdict in words, and the sinks."""

from __future__ import annotations

import csv
import math

import pytest
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.errors import GradsieveError
from gradsieve.judgement import LayerReading, Symptom, judge
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


@pytest.mark.parametrize("gain", [0.8, 1.0, 1.1])
def test_norms_fall_by_the_known_factor_and_reach_is_where_they_leave_the_range(gain):
    module = linear_rnn(gain)
    look = gst.watch(module)
    step(module)
    reading = look.read()
    logs = look.curves["RNN/layer0"]
    slope = math.log10(gain)
    assert logs == pytest.approx([logs[0] + lag * slope for lag in range(40)], abs=1e-4)
    assert reading["RNN/layer0/Q"] == pytest.approx(-39 * slope, abs=1e-3)
    hann = [math.sin(math.pi * (n + 0.5) / 28) ** 2 for n in range(28)]  # 0.7 of 40 steps
    slow = sum(w * gain ** (39 - n) for n, w in enumerate(hann)) / sum(hann)
    assert reading["RNN/layer0/slow_Q"] == pytest.approx(-math.log10(slow), abs=1e-3)
    assert reading["RNN/layer0/reach"] == (39 if gain >= 1 else reach_of(gain))


def reach_of(gain: float) -> int:
    """The longest lag at which the Hann mean of gain**lag over its window is above 10**-1.5."""
    far = 0
    for lag in range(1, 40):
        steps = max(1, int(0.7 * (lag + 1)))
        hann = [math.sin(math.pi * (n + 0.5) / steps) ** 2 for n in range(steps)]
        slow = sum(w * gain ** (lag - n) for n, w in enumerate(hann)) / sum(hann)
        far = lag if -math.log10(slow) <= 1.5 else far
    return far


@pytest.mark.parametrize(
    ("gain", "symptom"), [(0.8, "vanishing"), (1.0, "healthy"), (1.2, "exploding")]
)
def test_the_diagnosis_says_so_in_words_with_the_evidence_and_advice(gain, symptom):
    module = linear_rnn(gain)
    look = gst.watch(module)
    step(module)
    look.read()
    diagnosis = look.diagnosis()
    assert diagnosis.symptoms == (Symptom(symptom),)
    assert str(diagnosis).endswith(str(diagnosis.advice[-1]))
    assert "RNN/layer0" in str(diagnosis)
    assert "Q" in diagnosis.evidence[0]


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
    look = gst.watch(module)
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
    look = gst.watch(module, constant_loss=guess)
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
            names = {name.rsplit("/", 1)[0] for name in look.read() if name.endswith("Q")}
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


def test_sinks_hold_what_was_read(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = gst.TensorBoardSink(tmp_path / "board")
    module = nn.GRU(3, 4)
    look = gst.watch(module, sinks=[board, gst.CSVSink(tmp_path / "readings.csv")])
    step(module)
    reading = look.read(loss=0.5)
    board.close()
    with (tmp_path / "readings.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["name"]: float(row["value"]) for row in rows} == reading
    events = EventAccumulator(str(tmp_path / "board"))
    events.Reload()
    for name, value in reading.items():
        assert events.Scalars(name)[0].value == pytest.approx(value, rel=1e-5)


def test_no_gradient_at_all_is_told_from_health():
    reading = LayerReading(math.nan, 0, 10, name="rnn/layer0")
    assert judge([reading], (-1, 1)).symptoms == (Symptom.NO_GRADIENT,)
