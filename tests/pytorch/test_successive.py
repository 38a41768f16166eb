"""The cosine of successive gradients: what it is, and what it goes on through."""

from __future__ import annotations

import io
import math

import pytest
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.torch.applying.successive import Successive
from gradsieve.torch.modules.stack import Stack, find_stacks


def with_gradient(seed: int, dtype: torch.dtype = torch.float32) -> tuple[nn.RNN, Stack]:
    module = nn.RNN(2, 3, dtype=dtype)
    set_gradient(module, seed)
    return module, find_stacks(module)[0]


def set_gradient(module: nn.Module, seed: int) -> torch.Tensor:
    """Random ones; all of them in one vector."""
    generator = torch.Generator().manual_seed(seed)
    for one in module.parameters():
        one.grad = torch.randn(one.shape, generator=generator, dtype=torch.float64).to(one.dtype)
    return torch.cat([one.grad.flatten() for one in module.parameters()]).double()


def test_it_is_the_cosine_of_both_gradients():
    module, stack = with_gradient(0)
    successive = Successive()
    one = set_gradient(module, 1)
    assert math.isnan(successive.cosine(stack))
    for parameter in module.parameters():
        parameter.grad = 7e3 * parameter.grad  # no unit
    assert successive.cosine(stack) == pytest.approx(1.0)
    other = set_gradient(module, 2)
    expected = float(nn.functional.cosine_similarity(one, other, 0))
    assert successive.cosine(stack) == pytest.approx(expected, rel=1e-5)


def test_zero_no_and_fewer_gradients_say_nothing_and_end_nothing():
    module, stack = with_gradient(0)
    successive = Successive()
    successive.cosine(stack)
    for parameter in module.parameters():
        parameter.grad.zero_()
    assert math.isnan(successive.cosine(stack))
    set_gradient(module, 1)
    assert math.isnan(successive.cosine(stack))  # the one before was zero
    module.weight_hh_l0.requires_grad_(False)
    assert math.isnan(successive.cosine(stack))  # of other weights
    assert successive.cosine(stack) == pytest.approx(1.0)
    module.zero_grad()
    assert math.isnan(successive.cosine(stack))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_module_may_change_its_type_in_mid_run(dtype):
    module, stack = with_gradient(0)
    successive = Successive()
    successive.cosine(stack)
    module.to(dtype)
    set_gradient(module, 0)
    assert successive.cosine(stack) == pytest.approx(1.0, abs=1e-2)


class Embedded(nn.Module):
    """A recurrent module of one's own, whose symbols have sparse gradients."""

    recurrent_cell = gst.Cell(lambda x, a, state, weights: (torch.tanh(x + a)[..., 0, :],), ("a",))

    def __init__(self) -> None:
        super().__init__()
        self.symbols = nn.Embedding(5, 4, sparse=True)
        self.rnn = nn.RNN(4, 6)

    def recurrent_weights(self):
        return {
            name: getattr(self.rnn, f"{name}_l0")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        }

    def forward(self, inputs):
        return self.rnn(inputs + 0 * self.symbols(torch.tensor([1, 3])).sum())[0]


def test_sparse_gradients_are_taken():
    model = Embedded()
    optimizer = gst.Sieve(model, torch.optim.SGD(model.parameters(), lr=1e-3), clip=1.0)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(7, 2, 4))[-1].sum().backward()
        assert model.symbols.weight.grad.is_sparse
        optimizer.step()
    assert optimizer.state_dict()["gradsieve"]["learning"][""]["agreement"] > 0
    with gst.watch(model) as look:
        model(torch.ones(7, 2, 4))[-1].sum().backward()
        reading = look.read()
    dense = [one.grad.to_dense() for one in model.parameters()]
    assert reading["gradient_norm"] == pytest.approx(float(torch.nn.utils.get_total_norm(dense)))
    model.symbols.weight.grad = math.nan * model.symbols.weight.grad
    optimizer.step()
    assert optimizer.last.reason.name == "NOT_FINITE"


def train(module: nn.GRU, optimizer: gst.Sieve, batches: list[torch.Tensor]) -> None:
    for batch in batches:
        optimizer.zero_grad()
        module(batch)[0][-1].square().sum().backward()
        optimizer.step()


def fresh() -> tuple[nn.GRU, gst.Sieve]:
    torch.manual_seed(0)
    module = nn.GRU(3, 6)
    return module, gst.Sieve(module, torch.optim.Adam(module.parameters(), lr=1e-2))


@pytest.mark.parametrize("at", [1, 5, 11])
def test_auto_resumes_bit_for_bit(at):
    batches = list(torch.randn(16, 12, 4, 3))
    module, whole = fresh()
    train(module, whole, batches)
    module, begun = fresh()
    train(module, begun, batches[:at])
    buffer = io.BytesIO()
    torch.save([module.state_dict(), begun.state_dict()], buffer)
    buffer.seek(0)
    weights, state = torch.load(buffer, weights_only=True)
    other, rest = fresh()
    train(other, rest, batches[7:9])  # something else went before
    other.load_state_dict(weights)
    rest.load_state_dict(state)
    train(other, rest, batches[at:])
    own, expected = (one.state_dict()["gradsieve"] for one in (rest, whole))
    assert own["learning"] == expected["learning"]
    assert own["counts"] == expected["counts"]


def test_a_checkpoint_of_a_compiled_model_goes_on_in_the_plain_one():
    torch.manual_seed(0)
    plain = nn.ModuleDict({"first": nn.GRU(3, 4), "second": nn.LSTM(4, 5)})
    for model in (plain, torch.compile(plain), nn.DataParallel(plain)):
        found = [(stack.name, stack.label) for stack in find_stacks(model)]
        assert found == [("first", "first"), ("second", "second")]
    plain["second"] = torch.compile(plain["second"])
    assert [stack.name for stack in find_stacks(plain)] == ["first", "second"]
    assert find_stacks(torch.compile(nn.GRU(3, 4)))[0].label == "GRU"
