"""What gst.Sieve says when it cannot judge: the mistake, and what to do about it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.errors import GradsieveError, InvalidArgument


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(3, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(u)[0][-1])


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(12, 5, 3), torch.randint(0, 2, (5,))


def backward(model: nn.Module, data: tuple[torch.Tensor, torch.Tensor]) -> None:
    nn.functional.cross_entropy(model(data[0]), data[1]).backward()


def _sgd(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=1e-2)


def test_no_recurrent_module():
    model = nn.Linear(2, 2)
    with pytest.raises(InvalidArgument, match="without a recurrent module"):
        gst.Sieve(model, _sgd(model))


def test_parameters_that_the_optimizer_does_not_hold():
    model = Classifier()
    with pytest.raises(InvalidArgument, match=r"does not hold weight_ih_l0.*'?recurrent"):
        gst.Sieve(model, _sgd(model.head))


def test_backward_not_called():
    model = Classifier()
    optimizer = gst.Sieve(model, _sgd(model))
    model(batch()[0])
    with pytest.raises(GradsieveError, match=r"loss\.backward\(\)"):
        optimizer.step()


def test_a_model_changed_under_way():
    model = Classifier()
    optimizer = gst.Sieve(model, _sgd(model))
    model.recurrent = nn.GRU(3, 6)
    backward(model, batch())
    with pytest.raises(GradsieveError, match=r"make a new gst\.Sieve"):
        optimizer.step()


def test_select_has_no_meaning_here():
    model = Classifier()
    with pytest.raises(InvalidArgument, match="'auto', 'hold', 'steer' or 'skip'"):
        gst.Sieve(model, _sgd(model), policy="select")


def test_settings_are_checked_by_the_core():
    model = Classifier()
    with pytest.raises(InvalidArgument, match="q_range"):
        gst.Sieve(model, _sgd(model), q_range=(1, -1))
    with pytest.raises(InvalidArgument, match="every"):
        gst.Sieve(model, _sgd(model), every=0)


def test_sequences_too_short_for_a_verdict_are_kept_and_said():
    model = Classifier()
    optimizer = gst.Sieve(model, _sgd(model), horizon=50)
    backward(model, batch())
    with pytest.warns(UserWarning, match="no sequence is longer"):
        optimizer.step()
    assert optimizer.last.keep
    assert optimizer.counts["unjudged"] == 1
