"""Our own layers are judged by what their own passes leave behind, as if gone through again."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

import gradsieve as gs
import gradsieve.torch as gst
from gradsieve.sieve import Reason
from gradsieve.torch.evidence.gather import gather, predict
from gradsieve.torch.evidence.kernel_layer import FollowedLayer, KernelLayer
from gradsieve.torch.evidence.slope import q_gradient
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.record import Recorder
from gradsieve.torch.modules.stack import find_stacks

T, B, INPUTS, H = 30, 4, 3, 20
MAKERS = [gst.RNN, gst.GRU, gst.LSTM]
every_module = pytest.mark.parametrize("make", MAKERS)
ROUGH = {torch.float32: 1e-3, torch.float64: 1e-9}


class Watched:
    """One module, and what was recorded of its calls, followed or not."""

    def __init__(self, make, dtype=torch.float64, follow=True, **settings):
        torch.manual_seed(0)
        self.module = make(INPUTS, H, **settings).to(dtype)
        self.stacks = find_stacks(self.module)
        self.recorder = Recorder(self.stacks, Memory() if follow else None)
        shape = (B, T, INPUTS) if self.module.batch_first else (T, B, INPUTS)
        self.u = torch.randn(shape).to(dtype)

    def call(self, end=-1):
        """Forward and back: a gradient at one step, of very different size."""
        outputs = self.module(self.u)[0]
        chosen = outputs[:, end] if self.module.batch_first else outputs[end]
        torch.manual_seed(1)
        sizes = torch.tensor([[1e-6], [0.0], [1.0], [1e4]], dtype=chosen.dtype)
        (chosen * torch.randn(chosen.shape).to(chosen.dtype) * sizes).sum().backward()
        return outputs

    def measured(self, policy):
        ((stack, chains),) = self.recorder.finished().items()
        return gather(stack, chains, policy, False)

    def kind(self):
        (one,) = self.measured(gs.Sieve("hold").at_work()).carried
        (layer,) = one.layers.values()
        return type(layer)


@every_module
@pytest.mark.parametrize("dtype", ROUGH)
@pytest.mark.parametrize("policy", ["hold", "steer"])
@pytest.mark.parametrize("settings", [{}, {"batch_first": True}, {"bias": False}])
@pytest.mark.parametrize("end", [-1, 17])
def test_q_and_its_slope_are_those_of_a_second_way_through(make, dtype, policy, settings, end):
    if end != -1 and dtype == torch.float32:
        return
    found = []
    for follow in (True, False):
        watched = Watched(make, dtype, follow, **settings)
        watched.call(end)
        assert watched.kind() is (FollowedLayer if follow else KernelLayer)
        judge = gs.Sieve(policy, horizon=12).at_work()
        measured = watched.measured(judge)
        assert measured.unjudged is None
        found.append((measured.Q, measured.count, q_gradient(measured, judge, False)))
    (Q, count, slopes), (other_Q, other_count, others) = found
    assert count == other_count
    assert pytest.approx(other_Q, rel=ROUGH[dtype]) == Q
    for one, other in zip(slopes, others, strict=True):
        atol = ROUGH[dtype] * float(other.abs().max())
        torch.testing.assert_close(one, other, rtol=0, atol=atol)


@every_module
def test_a_gradient_of_the_last_states_is_followed(make):
    found = []
    for follow in (True, False):
        watched = Watched(make, follow=follow)
        last = watched.module(watched.u)[1]
        sum(
            part.square().sum() for part in (last if isinstance(last, tuple) else (last,))
        ).backward()
        assert watched.kind() is (FollowedLayer if follow else KernelLayer)
        judge = gs.Sieve("hold").at_work()
        measured = watched.measured(judge)
        found.append((measured.Q, q_gradient(measured, judge, False)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-9 * float(other.abs().max()))


@every_module
@pytest.mark.parametrize("estimator", ["full", "frozen", "measured"])
def test_predictions_are_those_of_a_second_way_through(make, estimator):
    found = []
    for follow in (True, False):
        watched = Watched(make, follow=follow)
        watched.call()
        judge = gs.Sieve("skip", estimator=estimator).at_work()
        measured = watched.measured(judge)
        measured.hold()
        with torch.no_grad():
            for parameter in watched.module.parameters():
                parameter.sub_(1e-5 * parameter.grad)
        found.append(predict(measured, judge, False))
    for name in ("S", "dS", "relative", "Q", "dQ"):
        rel = 1e-5 if estimator == "measured" else 1e-9
        assert getattr(found[0], name) == pytest.approx(getattr(found[1], name), rel=rel)


@every_module
def test_gradients_at_every_step_are_carried_again_from_the_gates_that_are_known(make):
    found = []
    for follow in (True, False):
        watched = Watched(make, follow=follow)
        watched.module(watched.u)[0].square().sum().backward()
        assert watched.kind() is KernelLayer
        judge = gs.Sieve("hold").at_work()
        measured = watched.measured(judge)
        found.append((measured.Q, q_gradient(measured, judge, False)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-9)
    for one, other in zip(found[0][1], found[1][1], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9 * float(other.abs().max()))


def test_what_is_no_longer_true_is_not_used():
    watched = Watched(gst.GRU)
    outputs = watched.call()
    assert watched.kind() is FollowedLayer
    with torch.no_grad():
        watched.module.weight_hh_l0.mul_(1.01)
    assert watched.kind() is KernelLayer
    watched = Watched(gst.GRU)
    outputs = watched.call()
    with torch.no_grad():
        outputs.add_(1)
    assert watched.kind() is KernelLayer


@every_module
def test_a_second_way_back_is_not_followed_and_its_gradient_counts(make):
    found = []
    for follow in (True, False):
        watched = Watched(make, follow=follow)
        outputs = watched.module(watched.u)[0]
        outputs[-1, :2].sum().backward(retain_graph=True)
        (3 * outputs[-1, 1:]).square().sum().backward()
        assert watched.kind() is KernelLayer
        found.append(watched.measured(gs.Sieve("hold").at_work()).Q)
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_modules_that_are_not_one_layer_of_ours_are_judged_as_before():
    for make, settings in [(gst.GRU, {"num_layers": 2}), (gst.RNN, {"bidirectional": True})]:
        watched = Watched(make, **settings)
        watched.module(watched.u)[0][-1].sum().backward()
        measured = watched.measured(gs.Sieve("hold").at_work())
        kinds = {type(layer) for one in measured.carried for layer in one.layers.values()}
        assert kinds == {KernelLayer}


def model_of(make):
    torch.manual_seed(0)
    return nn.ModuleDict({"recurrent": make(INPUTS, H), "head": nn.Linear(H, 2)})


def train(model, optimizer, steps=8):
    torch.manual_seed(1)
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = model["recurrent"](torch.randn(T, B, INPUTS))[0]
        model["head"](outputs[-1]).square().sum().backward()
        optimizer.step()
    return outputs


@every_module
def test_a_training_that_is_judged_and_in_range_has_the_bits_of_a_plain_one(make):
    models = [model_of(make) for _ in range(2)]
    plain, inner = (torch.optim.Adam(model.parameters(), lr=1e-2) for model in models)
    judged = gst.Sieve(models[1], inner, "hold", q_range=(-1e9, 1e9))
    train(models[0], plain)
    train(models[1], judged)
    assert judged.last.reason is Reason.IN_RANGE
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other)


@every_module
def test_a_call_that_was_judged_goes_with_its_last_reference(make):
    model = model_of(make)
    optimizer = gst.Sieve(model, torch.optim.Adam(model.parameters()), "hold", q_range=(-9, -8))
    gc.disable()
    try:
        outputs = weakref.ref(train(model, optimizer))
        assert optimizer.counts["corrected"] > 1
        assert outputs() is None
    finally:
        gc.enable()
