"""Real training set-ups: parametrized, half-precision, compiled, checkpointed, sharded models."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

import gradsieve.torch as gst
from gradsieve.errors import GradsieveError, InvalidArgument

ALWAYS = {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e9}
HOLD = {"policy": "hold", "q_range": (-9, -8), "steer_rate": 1.0}
WAYS = {
    "orthogonal": lambda module: parametrizations.orthogonal(module, "weight_hh_l0"),
    "weight_norm": lambda module: parametrizations.weight_norm(module, "weight_hh_l0"),
    "old weight_norm": lambda module: nn.utils.weight_norm(module, "weight_hh_l0"),
    "prune": lambda module: prune.random_unstructured(module, "weight_hh_l0", 0.3),
}


def run(module: nn.Module) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    like = next(module.parameters())
    return module(torch.randn(12, 4, 3, generator=generator, dtype=torch.float64).to(like.dtype))[0]


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", [nn.RNN, nn.LSTM])
@pytest.mark.parametrize("way", WAYS)
def test_a_parametrized_module_is_judged_by_its_effective_weights(way, kind):
    """As a plain module with these weights, before the step and after it."""
    module = kind(3, 6)
    WAYS[way](module)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-3), **ALWAYS)
    run(module)[-1].sum().backward()
    before = module.weight_hh_l0.detach().clone()
    optimizer.step()
    run(module)  # a hook computes the weight anew
    after = module.weight_hh_l0.detach().clone()
    assert not torch.equal(before, after)
    plain = kind(3, 6)
    twin = {name: getattr(module, name) for name in ("weight_ih_l0", "bias_ih_l0", "bias_hh_l0")}
    steps = {name: value.grad.clone() for name, value in twin.items()}
    with torch.no_grad():
        for name, value in twin.items():
            getattr(plain, name).copy_(value + 1e-3 * steps[name])
        plain.weight_hh_l0.copy_(before)
    inner = torch.optim.SGD(plain.parameters(), lr=1e-3)
    truth = gst.Sieve(plain, inner, **ALWAYS)
    run(plain)[-1].sum().backward()
    with torch.no_grad():
        plain.weight_hh_l0.grad.copy_((before - after) / 1e-3)  # the same change of the matrix
    truth.step()
    assert pytest.approx(truth.last.Q, rel=1e-9) == optimizer.last.Q
    assert optimizer.last.dS == pytest.approx(truth.last.dS, rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("way", WAYS)
def test_corrections_go_through_parametrizations(way):
    module = nn.RNN(3, 6)
    WAYS[way](module)
    optimizer = gst.Sieve(module, torch.optim.Adam(module.parameters(), lr=1e-3), **HOLD)
    for _ in range(3):
        optimizer.zero_grad()
        run(module)[-1].square().sum().backward()
        optimizer.step()
    assert optimizer.counts["corrected"] == 3
    if way == "orthogonal":
        weight = module.weight_hh_l0
        torch.testing.assert_close(weight @ weight.T, torch.eye(6), rtol=0, atol=1e-4)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_weights_are_measured_in_float32(dtype, kind):
    found = []
    for own in (torch.float32, dtype):
        torch.manual_seed(0)
        module = kind(3, 8).to(dtype).to(own)  # the same weights in both
        optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **HOLD)
        run(module)[-1].sum().backward()
        optimizer.step()
        assert optimizer.counts["corrected"] == 1
        assert all(parameter.dtype == own for parameter in module.parameters())
        found.append(optimizer.last.Q)
    assert found[1] == pytest.approx(found[0], abs=0.05)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 4)
        self.recurrent = nn.GRU(4, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(torch.tanh(self.embed(u)))[0][-1])


@pytest.mark.filterwarnings("ignore")  # PyTorch's, about compiling what has hooks
@pytest.mark.filterwarnings("error:The .grad attribute")  # dynamo does not go into our hooks
@pytest.mark.parametrize("part", ["whole", "head", "in place"])
def test_a_compiled_model_is_judged_as_the_plain_one(part):
    found = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = called = Classifier()
        if compiled and part == "whole":
            called = torch.compile(model, backend="aot_eager")
        elif compiled and part == "head":
            model.head = torch.compile(model.head, backend="aot_eager", fullgraph=True)
        elif compiled:
            model.compile(backend="aot_eager")
        optimizer = gst.Sieve(called, torch.optim.SGD(model.parameters(), lr=1e-2), **ALWAYS)
        for _ in range(2):
            optimizer.zero_grad()
            called(torch.randn(9, 2, 3)).square().sum().backward()
            optimizer.step()
        assert optimizer.counts["judged"] == 2
        found.append(optimizer.last)
    assert pytest.approx(found[0].Q, rel=1e-4) == found[1].Q
    assert found[1].dS == pytest.approx(found[0].dS, rel=1e-3)
    torch._dynamo.reset()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_is_judged_or_said(reentrant):
    found = []
    for saving in (False, True):
        torch.manual_seed(0)
        module = nn.RNN(3, 6)
        optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **ALWAYS)
        u = torch.randn(12, 4, 3, requires_grad=True)
        outputs = checkpoint(module, u, use_reentrant=reentrant)[0] if saving else module(u)[0]
        outputs[-1].sum().backward()
        optimizer.step()
        found.append(optimizer.last)
    assert pytest.approx(found[0].Q, rel=1e-5) == found[1].Q
    assert found[1].dS == pytest.approx(found[0].dS, rel=1e-3)


def test_parameters_replaced_after_construction_are_noticed():
    module = nn.RNN(3, 6)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2))
    module.weight_hh_l0 = nn.Parameter(torch.eye(6))
    run(module)[-1].sum().backward()
    with pytest.raises(GradsieveError, match="does not hold weight_hh_l0"):
        optimizer.step()


def test_a_sharded_model_is_refused_with_what_to_do():
    class FullyShardedDataParallel(nn.Module):  # by name, as PyTorch's needs a process group
        def __init__(self, module: nn.Module) -> None:
            super().__init__()
            self.module = module

    model = FullyShardedDataParallel(nn.RNN(3, 6))
    with pytest.raises(InvalidArgument, match="DistributedDataParallel"):
        gst.Sieve(model, torch.optim.SGD(model.parameters(), lr=1e-2))
