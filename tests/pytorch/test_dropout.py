"""Dropout between layers: judged with the masks that the call had, or not at all."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import gradsieve.torch as gst
from gradsieve.torch.evidence.transport import Transport
from gradsieve.torch.modules import dropout
from gradsieve.torch.modules.cells import drive, recur
from gradsieve.torch.modules.sequences import sequences
from gradsieve.torch.modules.stack import Place, find_stacks

T, B, INPUTS, H, SHARE = 10, 3, 2, 5, 0.4
ALWAYS = {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e9}
KINDS: dict[str, Callable[[], nn.RNNBase]] = {
    "rnn": lambda: nn.RNN(INPUTS, H, num_layers=2, dropout=SHARE),
    "gru": lambda: nn.GRU(INPUTS, H, num_layers=2, dropout=SHARE),
    "lstm": lambda: nn.LSTM(INPUTS, H, num_layers=2, dropout=SHARE),
    "gst.LSTM": lambda: gst.LSTM(INPUTS, H, num_layers=2, dropout=SHARE),
}


def S_and_Q(module: nn.RNNBase, u: Tensor, mask: Tensor, gamma: Tensor) -> tuple[float, float]:
    """Both layers written out with this mask; autograd finds δ at every recurrent product."""
    stack = find_stacks(module)[0]
    weights, cell = stack.weights(), stack.cell
    products: list[list[Tensor]] = []
    for level in range(2):
        state = tuple(u.new_zeros(B, H) for _ in range(cell.states))
        own, outputs = weights[Place(level, 0)], []
        products.append([])
        for now in u:
            products[-1].append(recur(state[0], own, len(cell.gates)))
            state = cell.update(drive(now, own, len(cell.gates)), products[-1][-1], state, {})
            outputs.append(state[0])
        u = torch.stack(outputs) * mask
    ends = [products[level][step] for step in (T - 1, 0) for level in range(2)]
    found = torch.autograd.grad((outputs[-1] * gamma).sum(), ends)
    near, far = (torch.cat([one.flatten(1) for one in pair], 1) for pair in (found[:2], found[2:]))
    square = 0.5 * float(far.square().sum())
    return square, math.log10(float(near.norm(dim=1).mean() / far.norm(dim=1).mean()))


def mask_of(seed: int) -> Tensor:
    torch.manual_seed(seed)
    return nn.functional.dropout(torch.ones(T, B, H), SHARE)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", KINDS)
def test_Q_and_dS_are_those_of_the_masked_network(kind):
    module, rate = KINDS[kind](), 1e-6
    before = copy.deepcopy(module)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=rate), **ALWAYS)
    u, gamma = torch.randn(T, B, INPUTS), torch.randn(B, H)
    torch.manual_seed(7)
    outputs, _ = module(u)
    (outputs[-1] * gamma).sum().backward()
    after_call = torch.get_rng_state()
    optimizer.step()
    assert torch.equal(torch.get_rng_state(), after_call)  # nothing else is drawn otherwise
    mask = mask_of(7)
    square, Q = S_and_Q(before, u, mask, gamma)
    assert pytest.approx(Q, rel=1e-9) == optimizer.last.Q
    # Along the step that was made, γ held: the finite difference of S.
    moved = S_and_Q(module, u, mask, gamma)[0] - square
    assert optimizer.last.dS == pytest.approx(moved, rel=1e-3)
    assert abs(S_and_Q(before, u, torch.ones(T, B, H), gamma)[1] - Q) > 1e-3


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", KINDS)
def test_a_correction_moves_the_masked_networks_Q(kind):
    module, rate = KINDS[kind](), 1e-3
    settings = {"q_range": (-99.0, -98.0), "steer_rate": rate, "limit": math.inf}
    u, Qs = torch.randn(T, B, INPUTS), []
    optimizer = gst.Sieve(
        module, torch.optim.SGD(module.parameters(), lr=1e-9), "steer", **settings
    )
    for _ in range(2):
        optimizer.zero_grad()
        torch.manual_seed(7)
        module(u)[0][-1].sum().backward()
        optimizer.step()
        Qs.append(optimizer.last.Q)
    assert math.log(10) * (Qs[0] - Qs[1]) == pytest.approx(rate, rel=0.02)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("layout", ["packed", "batch first", "bidirectional", "chunks"])
def test_every_layout_follows_its_masks(layout):
    """The outputs that the masks lead to are the recorded ones, so the measured network is it."""
    settings = {"batch_first": layout == "batch first", "bidirectional": layout == "bidirectional"}
    module = nn.GRU(INPUTS, H, num_layers=3, dropout=SHARE, **settings)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=0.0), **ALWAYS)
    u = torch.randn(T, B, INPUTS)
    if layout == "packed":
        outputs, _ = module(pack_padded_sequence(u, [T, T - 2, 4]))
        outputs.data.sum().backward()
    elif layout == "chunks":
        first, state = module(u[:4])
        outputs, _ = module(u[4:], state)
        (outputs[-1].sum() + first.sum()).backward()
    else:
        module(u)[0].sum().backward()
    (chains,) = optimizer.recorder.finished().values()
    (stack,) = optimizer.stacks
    weights = stack.fixed_weights()
    given = sequences(stack, chains[-1], weights[Place(0, 0)]["weight_hh"])
    assert len(given.masks) == 2
    transport = Transport(stack, weights, given)
    if layout != "packed":
        assert given.outputs is not None
    assert transport.follows
    if layout == "packed":
        top = transport.runs[Place(2, 0)].h
        padded = torch.nn.utils.rnn.pad_packed_sequence(outputs)[0]
        inside = torch.arange(T).unsqueeze(1) < torch.tensor([T, T - 2, 4])
        torch.testing.assert_close(top[inside], padded[inside])
    optimizer.step()
    assert optimizer.counts["unjudged"] == 0


def test_masks_that_cannot_be_drawn_again_are_not_judged_and_said(monkeypatch):
    """As with cuDNN, which has a generator of its own."""
    right = dropout.DropoutDraw.masks

    def others(self: dropout.DropoutDraw, *given: object) -> list[Tensor]:
        return [mask.flip(0) for mask in right(self, *given)]

    monkeypatch.setattr(dropout.DropoutDraw, "masks", others)
    module = KINDS["gru"]()
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=0.1))
    module(torch.randn(T, B, INPUTS))[0][-1].sum().backward()
    with pytest.warns(UserWarning, match="dropout between its layers"):
        optimizer.step()
    assert optimizer.last.reason.name == "NOT_JUDGED"


def test_without_dropout_nothing_is_remembered_of_the_generator():
    module = KINDS["lstm"]().eval()
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=0.1))
    module(torch.randn(T, B, INPUTS))[0][-1].sum().backward()
    (chains,) = optimizer.recorder.finished().values()
    assert chains[-1][0].drawn is None
