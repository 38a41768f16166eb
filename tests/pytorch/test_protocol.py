"""A recurrent module of one's own, through `recurrent_cell` and `recurrent_weights()`."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import gradsieve.torch as gst


def minimal_gated(x, a, state, weights):
    """The minimal gated unit, with a peephole: one more weight, which `update` itself reads."""
    keep = torch.sigmoid(x[..., 0, :] + a[..., 0, :] + weights["peep"] * state[0])
    new = torch.tanh(x[..., 1, :] + keep * a[..., 1, :])
    return (state[0] + keep * (new - state[0]),)


def normalised(x, a, state, weights):
    """Mixes units: a layer norm between the products and tanh."""
    total = (x + a)[..., 0, :]
    return (torch.tanh(nn.functional.layer_norm(total, total.shape[-1:]) * weights["gain"]),)


class OwnModule(nn.Module):
    """A time loop in Python, as a user would write it."""

    def __init__(self, cell: gst.Cell, extra: str, inputs: int = 2, hidden: int = 5) -> None:
        super().__init__()
        self.recurrent_cell = cell
        gates = len(cell.gates)
        self.weight_ih = nn.Parameter(torch.randn(gates * hidden, inputs))
        self.weight_hh = nn.Parameter(torch.randn(gates * hidden, hidden) / hidden**0.5)
        self.bias = nn.Parameter(torch.randn(gates * hidden))
        self.extra_name = extra
        self.extra = nn.Parameter(torch.randn(hidden))

    def recurrent_weights(self):
        return {
            "weight_ih": self.weight_ih,
            "weight_hh": self.weight_hh,
            "bias_hh": self.bias,
            self.extra_name: self.extra,
        }

    def forward(self, inputs, products=None):
        """`products` collects each a(n), so that a test can differentiate by them."""
        gates = len(self.recurrent_cell.gates)
        h = inputs.new_zeros(inputs.shape[1], self.weight_hh.shape[1])
        outputs = []
        for u in inputs:
            x = (u @ self.weight_ih.T).unflatten(-1, (gates, -1))
            a = (h @ self.weight_hh.T + self.bias).unflatten(-1, (gates, -1))
            if products is not None:
                products.append(a)
            (h,) = self.recurrent_cell.update(x, a, (h,), {self.extra_name: self.extra})
            outputs.append(h)
        return torch.stack(outputs)


CELLS = {
    "unitwise": (gst.Cell(minimal_gated, ("keep", "new")), "peep"),
    "mixing": (gst.Cell(normalised, ("tanh",), unitwise=False), "gain"),
}


def S_of(module: OwnModule, u: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """½ Σ ‖∂⟨γ, h(T)⟩/∂a(1)‖², by autograd through the user's own loop."""
    products: list[torch.Tensor] = []
    outputs = module.forward(u, products)
    (delta,) = torch.autograd.grad((outputs[-1] * gamma).sum(), products[:1])
    return 0.5 * delta.square().sum()


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", CELLS)
def test_the_prediction_for_a_users_cell_is_the_derivative_of_its_S(kind):
    module = OwnModule(*CELLS[kind])
    model = nn.Sequential(module)
    optimizer = gst.Sieve(
        model,
        torch.optim.SGD(model.parameters(), lr=1e-2),
        "skip",
        q_range=(-1e6, 1e6),
        max_change=1e9,
    )
    u, gamma = torch.randn(6, 3, 2), torch.randn(3, 5)
    (model(u)[-1] * gamma).sum().backward()
    before = [p.detach().clone() for p in model.parameters()]
    optimizer.step()
    update = [p.detach() - old for p, old in zip(model.parameters(), before, strict=True)]
    scale = 1e-4
    values = []
    for sign in (1, -1):
        with torch.no_grad():
            for p, old, change in zip(model.parameters(), before, update, strict=True):
                p.copy_(old + sign * scale * change)
        values.append(float(S_of(module, u, gamma)))
    assert optimizer.last.dS == pytest.approx((values[0] - values[1]) / (2 * scale), rel=1e-5)


@pytest.mark.usefixtures("float64")
def test_steering_goes_through_computed_weights_to_the_parameters():
    """A recurrent matrix that is a diagonal: the correction must land on its one parameter."""

    class Diagonal(OwnModule):
        def __init__(self):
            super().__init__(*CELLS["unitwise"])
            del self.weight_hh
            self.diagonal = nn.Parameter(0.3 * torch.ones(2, 5))

        @property
        def weight_hh(self):
            return torch.cat([torch.diag(row) for row in self.diagonal])

    module = Diagonal()
    optimizer = gst.Sieve(
        module,
        torch.optim.SGD(module.parameters(), lr=1e-12),
        policy="steer",
        q_range=(-0.01, 0.01),
        limit=math.inf,
    )
    before = module.diagonal.detach().clone()
    module(torch.randn(20, 3, 2))[-1].sum().backward()
    optimizer.step()
    assert optimizer.counts["corrected"] == 1
    assert float((module.diagonal.detach() - before).abs().max()) > 1e-6


def test_a_watched_module_of_ones_own_is_named_by_its_gates():
    module = OwnModule(*CELLS["unitwise"])
    look = gst.watch(module, every=1)
    for _ in range(2):
        module.zero_grad()
        module(torch.randn(6, 3, 2))[-1].sum().backward()
        reading = look.read()
        with torch.no_grad():
            module.weight_hh.add_(0.1)
    assert reading["OwnModule/layer0/share/keep"] == pytest.approx(0.5, abs=0.01)
