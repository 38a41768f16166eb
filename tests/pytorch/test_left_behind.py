"""Nothing is left behind: hooks, copies, pickles, checkpoints."""

from __future__ import annotations

import copy
import gc
import io
import math
import pickle

import pytest
import torch
from states import own_part
from torch import nn

import gradsieve.torch as gst
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.torch.modules.listening import _LINES


def hooks(model: nn.Module) -> int:
    own = sum(len(module._forward_hooks) for module in model.modules())
    return own + len(nn.modules.module._global_forward_hooks)


def model() -> nn.Module:
    return nn.ModuleDict({"first": nn.GRU(3, 4), "second": nn.LSTM(4, 5)})


def sgd(one: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(one.parameters(), lr=0.1)


def run(one: nn.Module) -> torch.Tensor:
    return one["second"](one["first"](torch.ones(9, 2, 3))[0])[0]


def test_twenty_sieves_made_and_dropped_leave_no_hook():
    one = model()
    for _ in range(20):
        optimizer = gst.Sieve(one, sgd(one))
        run(one)[-1].sum().backward()
        optimizer.step()
    look = gst.watch(one)
    assert hooks(one) == 2  # one a module, however many listen
    del optimizer, look
    gc.collect()
    assert hooks(one) == 0
    assert "__getstate__" not in vars(one["first"])


def test_a_dropped_model_takes_its_lines_along():
    one = model()
    first = one["first"]
    optimizer = gst.Sieve(one, sgd(one))
    assert first in _LINES
    del one, optimizer
    gc.collect()
    assert first not in _LINES


@pytest.mark.parametrize("how", ["sieve", "watch"])
def test_a_with_block_and_close_take_the_hooks_off(how):
    one = model()
    make = {"sieve": lambda: gst.Sieve(one, sgd(one)), "watch": lambda: gst.watch(one)}[how]
    with make():
        assert hooks(one) == 2
    assert hooks(one) == 0
    held = make()
    held.close()
    held.close()
    assert hooks(one) == 0


def saved_and_loaded(one: nn.Module) -> nn.Module:
    buffer = io.BytesIO()
    torch.save(one, buffer)
    assert b"gradsieve" not in buffer.getvalue()
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


@pytest.mark.parametrize("way", [copy.deepcopy, saved_and_loaded])
def test_copies_are_free_of_sieve_and_watch(way):
    one = model()
    other = one["first"].register_forward_hook(_others_hook)
    optimizer, look = gst.Sieve(one, sgd(one)), gst.watch(one)
    run(one)[-1].sum().backward()
    copied = way(one)
    assert hooks(copied) == 1  # the other one
    assert "__getstate__" not in vars(copied["first"])
    torch.testing.assert_close(run(copied), run(one))
    run(copied)[-1].sum().backward()
    assert [len(calls) for calls in optimizer.recorder.finished().values()] == [1, 1]
    look.close()
    second = gst.Sieve(copied, sgd(copied))
    run(copied)[-1].sum().backward()
    second.step()
    assert second.counts["judged"] == 1
    other.remove()


def _others_hook(module, args, result):
    return None


def test_a_modules_own_getstate_is_respected():
    class Own(nn.GRU):
        def __getstate__(self):
            return {**self.__dict__, "note": "mine"}

    one = Own(3, 4)
    with gst.watch(one):
        copied = copy.deepcopy(one)
    assert copied.note == "mine"
    assert hooks(copied) == 0


@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, pickle.dumps])
def test_a_sieve_says_why_it_cannot_be_copied(way):
    one = model()
    with pytest.raises(GradsieveError, match="tied to one model"):
        way(gst.Sieve(one, sgd(one)))


@pytest.mark.parametrize("way", [copy.deepcopy, copy.copy, pickle.dumps])
def test_a_watch_says_why_it_cannot_be_copied_and_goes_on(way):
    """A copy would hear of no call, and its readings would be empty without a word."""
    one = model()
    with gst.watch(one, every=1) as look:
        with pytest.raises(GradsieveError, match="listens to one model"):
            way(look)
        run(one)[-1].sum().backward()
        assert look.read()


BAD = {
    "no dict": 3,
    "counts of words": {"counts": {"steps": "many"}},
    "negative": {"counts": {"steps": -1}},
    "half a step": {"looks_in": 1.5},
    "not finite": {"learning": {"": {"agreement": math.nan}}},
    "unknown": {"learning": {"": {"quick": 1.0}}},
    "infinite": {"learning": {"first": {"first": math.inf}}},
    "a list": {"learning": [1, 2]},
    "gradients in a list": {"gradients": [torch.ones(3)]},
    "a gradient of words": {"gradients": {"first": "many"}},
    "a matrix": {"gradients": {"first": torch.ones(2, 2)}},
    "a gradient that is not finite": {"gradients": {"first": torch.tensor([1.0, math.nan])}},
}


@pytest.mark.parametrize("kind", BAD)
def test_a_malformed_state_is_refused_and_changes_nothing(kind):
    one = model()
    optimizer = gst.Sieve(one, torch.optim.Adam(one.parameters()))
    run(one)[-1].sum().backward()
    optimizer.step()
    before = copy.deepcopy(optimizer.state_dict())
    state = copy.deepcopy(before)
    for group in state["param_groups"]:
        group["lr"] = 7.0
    state["gradsieve"] = BAD[kind]
    with pytest.raises(InvalidArgument, match=r"no state of gst\.Sieve"):
        optimizer.load_state_dict(state)
    after = optimizer.state_dict()
    assert own_part(after) == own_part(before)
    assert after["param_groups"] == before["param_groups"]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("change", [lambda y: y.mul_(3), lambda y: y.detach().zero_()])
def test_outputs_changed_in_place_give_the_same_Q(change):
    """The gradient is that of the outputs as the module gave them."""
    found = []
    for spoil in (False, True):
        torch.manual_seed(0)
        module = nn.RNN(3, 6)
        with gst.Sieve(module, sgd(module), "skip", q_range=(-99, 99)) as optimizer:
            outputs, _ = module(torch.randn(12, 4, 3))
            outputs[-1].sum().backward()
            if spoil:
                with torch.no_grad():
                    change(outputs)
            optimizer.step()
        found.append(optimizer.last.Q)
    assert found[1] == pytest.approx(found[0], rel=1e-9)


@pytest.mark.usefixtures("float64")
def test_outputs_changed_in_place_within_the_graph_give_the_same_Q():
    found = []
    for factor in (1.0, 3.0):
        torch.manual_seed(0)
        module = nn.RNN(3, 6)
        optimizer = gst.Sieve(module, sgd(module), "skip", q_range=(-99, 99))
        outputs, _ = module(torch.randn(12, 4, 3))
        outputs.mul_(factor)
        outputs[-1].sum().backward()
        optimizer.step()
        found.append(optimizer.last.Q)
    assert found[1] == pytest.approx(found[0], rel=1e-9)


@pytest.mark.parametrize("which", ["inputs", "state"])
def test_inputs_changed_in_place_are_not_judged_and_said(which):
    module = nn.GRU(3, 6)
    optimizer = gst.Sieve(module, sgd(module))
    given = {"inputs": torch.randn(12, 4, 3), "state": torch.randn(1, 4, 6)}
    module(given["inputs"], given["state"])[0][-1].sum().backward()
    given[which].zero_()
    with pytest.warns(UserWarning, match="changed in place"):
        optimizer.step()
    assert optimizer.last.reason.name == "NOT_JUDGED"
    assert "changed in place" in optimizer.unjudged[""]
