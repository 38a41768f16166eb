"""The kernel's deltas of one tanh layer, and their change, against the recursions in Python."""

from __future__ import annotations

import pytest
import torch

from gradsieve.torch import kernel_bridge
from gradsieve.torch.evidence.forward import run_layer
from gradsieve.torch.evidence.local import linearise
from gradsieve.torch.evidence.recursion import (
    Added,
    Deltas,
    Scaled,
    pull_back_in_python,
    push_forward_in_python,
)
from gradsieve.torch.modules import cells

SIZES = [(6, 3, 5), (4, 13, 33), (2, 1, 1), (5, 4, 100)]


def layer(size: tuple[int, int, int], scale: float = 1.5):
    steps, batch, hidden = size
    torch.manual_seed(hidden)
    shapes = {"weight_ih": (hidden, 2), "weight_hh": (hidden, hidden), "bias_hh": (hidden,)}
    weights = {name: torch.randn(shape).double() for name, shape in shapes.items()}
    weights["weight_hh"] *= scale / hidden**0.5
    initial = (torch.randn(batch, hidden).double(),)
    return run_layer(cells.TANH, weights, torch.randn(steps, batch, 2).double(), initial)


def entering(run, last: torch.Tensor) -> tuple[torch.Tensor, Scaled]:
    """γ, zero where nothing enters, and the same as a sequence."""
    gamma = torch.randn_like(run.after[0][0]) * (last >= 0).unsqueeze(-1)
    whole = torch.zeros_like(run.after[0])
    whole[last.clamp(min=0), torch.arange(len(last))] = gamma
    return gamma, Scaled((whole,), torch.zeros(whole.shape[:2], dtype=torch.int32))


def deltas_of(run, gamma: torch.Tensor, last: torch.Tensor) -> Deltas:
    found = kernel_bridge.tanh_deltas(
        run.after[0], run.weights["weight_hh"], gamma, last, run.memory
    )
    return Deltas(found[0].unsqueeze(-2), (), found[1])


def value(deltas) -> torch.Tensor:
    return torch.ldexp(deltas.delta.squeeze(-2), deltas.exponents.unsqueeze(-1))


@pytest.mark.parametrize("size", SIZES)
def test_deltas_and_changes_are_those_of_the_recursions(size):
    run = layer(size)
    local, weight = linearise(run), run.weights["weight_hh"]
    last = torch.randint(-1, size[0], (size[1],))
    gamma, scaled = entering(run, last)
    found = deltas_of(run, gamma, last)
    expected = pull_back_in_python(local, weight, scaled)
    torch.testing.assert_close(value(found), value(expected), rtol=1e-9, atol=1e-12)

    update = {name: torch.randn_like(one) for name, one in run.weights.items()}
    update["bias_ih"] = torch.randn_like(update["bias_hh"])
    given = kernel_bridge.TanhRun(
        run.u, run.after[0], run.before[0][0], weight, found.delta, found.exponents
    )
    change = kernel_bridge.tanh_change(given, update, run.memory)
    change = Deltas(change.unsqueeze(-2), (), found.exponents)
    explicit = (
        run.u @ update["weight_ih"].T
        + run.before[0] @ update["weight_hh"].T
        + (update["bias_ih"] + update["bias_hh"])
    ).unsqueeze(-2)
    da, _ = push_forward_in_python(local, weight, explicit, None)
    bent = local.bend(expected.g, None, da, lambda part: run.before[part], {})
    added = Added(bent.a, [expected.delta.squeeze(-2) @ update["weight_hh"]])
    slow = pull_back_in_python(local, weight, None, added, expected.exponents)
    torch.testing.assert_close(value(change), value(slow), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_deltas_stay_numbers_where_they_leave_the_range_of_a_float(scale):
    run = layer((200, 3, 5), scale)
    if scale > 1:  # without saturation, so that they really grow
        run.after[0].mul_(1e-3)
    last = torch.full((3,), 199)
    gamma, _ = entering(run, last)
    found = deltas_of(run, gamma, last)
    assert found.delta.isfinite().all()
    assert (found.delta.abs().amax((-1, -2)) > 1e-12).all()
    assert (found.exponents[0].abs() > 2000).all()
