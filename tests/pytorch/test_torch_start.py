"""gst.init_: orthogonal or identity for tanh, memories spread over the wanted reach for gates."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument

H = 64


@pytest.mark.parametrize("recurrent", ["orthogonal", "identity"])
def test_a_tanh_stack_begins_orthogonal(recurrent):
    module = nn.RNN(3, H, num_layers=2, bidirectional=True)
    inputs = module.weight_ih_l0.detach().clone()
    assert gst.init_(module, reach=50, recurrent=recurrent) is module
    for name, value in module.named_parameters():
        if "weight_hh" in name:
            torch.testing.assert_close(value @ value.T, torch.eye(H), rtol=0, atol=1e-5)
            assert torch.equal(value, torch.eye(H)) == (recurrent == "identity")
        if "bias" in name:
            assert not value.any()
    assert torch.equal(module.weight_ih_l0, inputs)


def half_life(keep: torch.Tensor) -> torch.Tensor:
    """After how many steps a unit that keeps this share a step has forgotten (1/e is left)."""
    return -1 / keep.log()


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_gated_units_remember_for_times_spread_over_the_reach(kind):
    """The gates' real values for a zero input and state say how long each unit remembers."""
    module, reach = gst.init_(kind(3, 4 * H), reach=100), 100
    bias = (module.bias_ih_l0 + module.bias_hh_l0).detach().view(-1, 4 * H)
    times = half_life(torch.sigmoid(bias[1]))  # LSTM's forget, GRU's update
    assert float(times.min()) > 1
    assert float(times.max()) < reach
    # uniform: a quarter of the units in each quarter of the reach
    quarters = torch.histc(times, 4, 0, reach) / len(times)
    assert float((quarters - 0.25).abs().max()) < 0.1
    if kind is nn.LSTM:
        torch.testing.assert_close(bias[0], -bias[1])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_the_gradient_reaches_further_than_from_pytorchs_start(kind):
    found = []
    for start in (False, True):
        torch.manual_seed(0)
        module = kind(3, H)
        if start:
            gst.init_(module, reach=100)
        with gst.watch(module) as look:
            module(torch.randn(100, 4, 3))[0][-1].sum().backward()
            reading = look.read()
        found.append(reading[f"{kind.__name__}/layer0/slow_Q"])
    assert found[1] < 2 < found[0]


@pytest.mark.parametrize("reach", [2, 0, 2.5, True, "long"])
def test_a_reach_that_is_none_is_refused(reach):
    with pytest.raises(InvalidArgument, match="reach is"):
        gst.init_(nn.LSTM(2, 3), reach=reach)


def test_what_it_cannot_start_is_said():
    with pytest.raises(InvalidArgument, match="bias=False"):
        gst.init_(nn.GRU(2, 3, bias=False), reach=10)
    with pytest.raises(InvalidArgument, match="recurrent is 'wild'"):
        gst.init_(nn.RNN(2, 3), reach=10, recurrent="wild")
    with pytest.raises(InvalidArgument, match="without a recurrent module"):
        gst.init_(nn.Linear(2, 3), reach=10)


def test_seeds_make_it_again():
    twice = []
    for _ in range(2):
        torch.manual_seed(7)
        twice.append(gst.init_(nn.LSTM(2, 5), reach=30).state_dict())
    assert all(torch.equal(a, b) for a, b in zip(*(one.values() for one in twice), strict=True))
