"""Cells fed one step at a time, and chunks whose state is carried on, are judged as one call."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import gradsieve.torch as gst

T, B, INPUTS, H = 9, 3, 2, 5
ALWAYS = {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e9}
PAIRS = {"tanh": (nn.RNN, nn.RNNCell), "gru": (nn.GRU, nn.GRUCell), "lstm": (nn.LSTM, nn.LSTMCell)}


def sgd(module: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(module.parameters(), lr=1e-2)


def twins(kind: str) -> tuple[nn.RNNBase, nn.RNNCellBase]:
    whole, cell = (one(INPUTS, H) for one in PAIRS[kind])
    cell.load_state_dict(
        {name.removesuffix("_l0"): value for name, value in whole.state_dict().items()}
    )
    return whole, cell


def assert_same(found: gst.Sieve, truth: gst.Sieve) -> None:
    assert found.last.reason is truth.last.reason
    assert pytest.approx(truth.last.Q, rel=1e-9, abs=1e-12) == found.last.Q
    assert found.last.dS == pytest.approx(truth.last.dS, rel=1e-9, nan_ok=True)
    for one, other in zip(found.model.parameters(), truth.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("settings", [ALWAYS, {"policy": "hold", "q_range": (-9, -8)}])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("kind", PAIRS)
def test_a_cell_in_a_loop_is_judged_as_the_module_for_whole_sequences(kind, begun, settings):
    whole, cell = twins(kind)
    truth, found = (gst.Sieve(one, sgd(one), **settings) for one in (whole, cell))
    u, weight = torch.randn(T, B, INPUTS), torch.randn(T, B, H)
    weight[-1, 0] = 0  # of one example no gradient enters at the very last step
    states = [torch.randn(B, H) for _ in range(2 if kind == "lstm" else 1)] if begun else None
    state = None
    if states:
        state = tuple(states) if kind == "lstm" else states[0]
        first = [one.unsqueeze(0) for one in states]
        outputs, _ = whole(u, tuple(first) if kind == "lstm" else first[0])
    else:
        outputs, _ = whole(u)
    (outputs * weight).sum().backward()
    hidden = []
    for step in u:
        state = cell(step, state)
        hidden.append(state[0] if kind == "lstm" else state)
    (torch.stack(hidden) * weight).sum().backward()
    truth.step()
    found.step()
    assert found.counts["unjudged"] == 0
    assert_same(found, truth)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", ["rnn", "lstm", "gst"])
def test_chunks_whose_state_is_carried_on_are_judged_as_the_whole(kind):
    make = {
        "rnn": lambda: nn.RNN(INPUTS, H, batch_first=True),
        "lstm": lambda: nn.LSTM(INPUTS, H, num_layers=2, batch_first=True),
        "gst": lambda: gst.RNN(INPUTS, H, batch_first=True),
    }[kind]
    sieves = []
    for lengths in ([9], [4, 3, 2]):
        torch.manual_seed(0)
        module = make()
        optimizer = gst.Sieve(module, sgd(module), **ALWAYS)
        u, weight = torch.randn(B, T, INPUTS), torch.randn(B, T, H)
        state, loss = None, torch.zeros(())
        for part, own in zip(u.split(lengths, 1), weight.split(lengths, 1), strict=True):
            outputs, state = module(part, state)
            loss = loss + (outputs * own).sum()
        last = state[0] if isinstance(state, tuple) else state
        (loss + last.sin().sum()).backward()
        optimizer.step()
        sieves.append(optimizer)
    assert_same(sieves[1], sieves[0])


@pytest.mark.usefixtures("float64")
def test_a_detached_state_begins_anew():
    """Truncated BPTT: the gradient ends where the state is detached, and so does the measure."""
    module = nn.GRU(INPUTS, H)
    looked = []
    for steps in (T, 2 * T):
        optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=0.0), **ALWAYS)
        torch.manual_seed(1)
        u, state = torch.randn(2 * T, B, INPUTS), None
        _, state = module(u[:T], state)
        state = state.detach() if steps == T else state
        outputs, _ = module(u[T:], state)
        outputs[-1].sum().backward()
        looked.append([len(chain) for chain in optimizer.recorder.finished().popitem()[1]])
        optimizer.step()
        looked.append(optimizer.last.Q)
        optimizer.close()
    assert looked[0] == [1]
    assert looked[2] == [2]
    assert looked[1] < looked[3]  # the longer way, the more has vanished


def test_two_rollouts_from_one_state_do_not_mix():
    cell = nn.GRUCell(INPUTS, H)
    optimizer = gst.Sieve(cell, sgd(cell))
    first = cell(torch.randn(B, INPUTS))
    ends = []
    for _ in range(2):
        state = first
        for _ in range(3):
            state = cell(torch.randn(B, INPUTS), state)
        ends.append(state)
    (ends[0] + ends[1]).sum().backward()
    (chains,) = optimizer.recorder.finished().values()
    assert sorted(map(len, chains)) == [3, 4]
    optimizer.step()
    assert optimizer.counts["judged"] == 1


def test_a_state_changed_between_two_steps_breaks_the_chain():
    cell = nn.RNNCell(INPUTS, H)
    optimizer = gst.Sieve(cell, sgd(cell))
    state: Tensor | None = None
    for n in range(6):
        state = cell(torch.randn(B, INPUTS), state)
        state = state * 0.5 if n == 2 else state
    state.sum().backward()
    (chains,) = optimizer.recorder.finished().values()
    assert sorted(map(len, chains)) == [3, 3]


def test_a_cell_inside_a_module_of_ones_own_belongs_to_it():
    class Loop(nn.Module):
        recurrent_cell = gst.Cell(lambda x, a, s, w: (torch.tanh(x + a).squeeze(-2),), ("tanh",))

        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.RNNCell(INPUTS, H)

        def recurrent_weights(self) -> dict[str, Tensor]:
            return dict(self.cell.named_parameters())

        def forward(self, u: Tensor) -> Tensor:
            state, outputs = None, []
            for step in u:
                state = self.cell(step, state)
                outputs.append(state)
            return torch.stack(outputs)

    module = Loop()
    optimizer = gst.Sieve(module, sgd(module), **ALWAYS)
    module(torch.randn(T, B, INPUTS))[-1].sum().backward()
    optimizer.step()
    assert list(optimizer.verdicts) == [""]
    assert optimizer.last.reason.name == "IN_RANGE"
