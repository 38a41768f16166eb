"""The gradient of a gated network on its way back, against PyTorch's autograd in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradsieve.data import from_arrays
from gradsieve.diagnosis import diagnose
from gradsieve.diagnosis._gated import gated_flow
from gradsieve.errors import InvalidArgument
from gradsieve.export import Portable, from_torch
from gradsieve.network import Array

torch = pytest.importorskip("torch")
KINDS = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}


def network(cell: str, output: str = "softmax", layers: int = 1) -> Portable:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        modules = KINDS[cell](2, 6, layers), torch.nn.Linear(6, 3)
    classes = "abc" if output == "softmax" else None
    return from_torch(*modules, output=output, classes=classes)


def by_autograd(net: Portable, u: Array, t: Array, starts: Array) -> tuple[Array, float]:
    """∂E/∂a, a = U h(n−1), of every step, from the cell's equations written out."""
    layer, size = net.layers[0], net.hidden
    double = {name: torch.from_numpy(value.astype(float)) for name, value in vars(layer).items()}
    active = torch.from_numpy((np.arange(len(u))[:, None] >= starts)[:, :, None].astype(float))
    h = c = torch.zeros(u.shape[1], size, dtype=torch.float64)
    products = []
    for n, step in enumerate(torch.from_numpy(u)):
        a = (h @ double["w_hh"].T).requires_grad_()
        a.retain_grad()
        products.append(a)
        x = step @ double["w_ih"].T + double["b"]
        if net.cell == "gru":
            r, z = torch.sigmoid(x + a)[:, : 2 * size].chunk(2, 1)
            new = torch.tanh(x[:, 2 * size :] + r * (a[:, 2 * size :] + double["b_n"]))
            h = ((1 - z) * new + z * h) * active[n]
        else:
            i, f, g, o = (x + a).chunk(4, 1)
            c = (torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)) * active[n]
            h = torch.sigmoid(o) * torch.tanh(c) * active[n]
    y = h @ torch.from_numpy(net.w_out.astype(float)).T + torch.from_numpy(net.b_out.astype(float))
    target = torch.from_numpy(t)
    if net.output == "softmax":
        loss = torch.nn.functional.cross_entropy(y, target, reduction="sum")
    else:
        loss = 0.5 * (y - target).square().sum()
    loss.backward()
    return np.stack([a.grad.numpy() for a in products]), float(loss.detach())


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("output", ["softmax", "linear"])
def test_deltas_are_those_of_autograd_over_unequal_lengths(cell: str, output: str) -> None:
    generator = np.random.default_rng(0)
    u, starts = generator.normal(size=(12, 4, 2)), np.array([0, 0, 3, 10])
    t: Any = generator.integers(0, 3, 4) if output == "softmax" else generator.normal(size=(4, 3))
    net = network(cell, output)
    flow = gated_flow(net, u, t, starts)
    wanted, loss = by_autograd(net, u, t, starts)
    np.testing.assert_allclose(
        np.ldexp(flow.scaled_deltas, flow.exponents[:, None, None]), wanted, rtol=1e-9, atol=1e-15
    )
    assert flow.loss == pytest.approx(loss)


@pytest.mark.parametrize("cell", KINDS)
def test_the_diagnosis_is_that_of_watch(cell: str) -> None:
    import gradsieve.torch as gst

    torch.manual_seed(0)
    recurrent, head = KINDS[cell](2, 6).double(), torch.nn.Linear(6, 3).double()
    for weight in (*recurrent.parameters(), *head.parameters()):
        weight.data = weight.data.float().double()  # as a network of float32 holds them
    generator = np.random.default_rng(0)
    u, t = generator.normal(size=(30, 5, 2)), generator.integers(0, 3, 5)
    look = gst.watch(recurrent)
    y = head(recurrent(torch.from_numpy(u))[0][-1])
    torch.nn.functional.cross_entropy(y, torch.from_numpy(t), reduction="sum").backward()
    seen = look.read()
    net = from_torch(recurrent, head, classes="abc")
    found = diagnose(net, from_arrays(list(u.swapaxes(0, 1)), t, "abc"))
    named = {name.rsplit("/", 1)[-1]: value for name, value in seen.items()}
    assert pytest.approx(named["Q"], rel=1e-5) == found.Q
    assert found.slow_Q == pytest.approx(named["slow_Q"], rel=1e-5)


def test_a_gradient_far_below_what_a_float_holds_keeps_its_size() -> None:
    net = network("gru")
    shut = np.concatenate([np.zeros(6), np.full(6, -20.0), np.zeros(6)]).astype(np.float32)
    net.layers[0].b[:] = shut  # the update gate keeps nothing
    net.layers[0].w_hh[:] *= 0.01
    generator = np.random.default_rng(0)
    data = from_arrays(list(generator.normal(size=(4, 400, 2))), np.arange(4) % 3, "abc")
    found = diagnose(net, data)
    assert found.Q is not None
    assert 400 < found.Q < 2000  # 10^-308 is the smallest float
    assert found.reach < 5


def test_what_it_cannot_look_into_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="has 2 gru layers"):
        diagnose(network("gru", layers=2))
