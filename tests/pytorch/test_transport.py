"""What the sieve predicts against finite differences of an independent computation, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_modules import INPUTS, KINDS, H, forgetful, make, weights_of
from stepwise_oracle import Oracle
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import gradsieve as gs
import gradsieve.torch as gst
from gradsieve.torch.evidence.gather import gather
from gradsieve.torch.modules.record import Recorder
from gradsieve.torch.modules.stack import find_stacks

ALWAYS = {"policy": "skip", "q_range": (-1e6, 1e6), "max_change": 1e9}
T, B = 7, 3


def last_gradient(module: nn.RNNBase, outputs: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """⟨γ, outputs⟩ where γ stands at each direction's own last step; time first."""
    if module.batch_first:
        outputs = outputs.transpose(0, 1)
    if not module.bidirectional:
        return (outputs[-1] * gamma).sum()
    half = outputs.shape[-1] // 2
    forward, reverse = outputs[-1, :, :half], outputs[0, :, half:]
    return (forward * gamma[:, :half]).sum() + (reverse * gamma[:, half:]).sum()


def check(module, optimizer, oracle, before, after, rel=1e-5):
    """Q, and dS and dS/(2S) against central differences of the oracle's S."""
    S, Q = oracle.at(before)
    scale = 1e-5 / max(float((after[name] - before[name]).abs().max()) for name in before)
    moved = [
        oracle.at({n: before[n] + sign * scale * (after[n] - before[n]) for n in before})[0]
        for sign in (1, -1)
    ]
    dS = (moved[0] - moved[1]) / (2 * scale)
    verdict = optimizer.last
    assert verdict.keep
    assert pytest.approx(Q, rel=1e-9) == verdict.Q
    assert verdict.dS == pytest.approx(dS, rel=rel)
    assert verdict.relative == pytest.approx(dS / (2 * S), rel=rel)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", KINDS)
def test_full_prediction_is_the_derivative_of_S_along_the_update(kind):
    module = make(kind)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **ALWAYS)
    u = torch.randn(T, B, INPUTS)
    outputs, _ = module(u.transpose(0, 1) if module.batch_first else u)
    gamma = torch.randn(B, outputs.shape[-1])
    last_gradient(module, outputs, gamma).backward()
    before = weights_of(module)
    optimizer.step()
    check(module, optimizer, Oracle(module, u, gamma, [T] * B), before, weights_of(module))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", ["tanh", "two lstm layers", "bidirectional gru"])
def test_packed_sequences_are_judged_from_their_own_last_step(kind):
    module = make(kind)
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **ALWAYS)
    lengths = [4, 7, 5]
    u = torch.randn(T, B, INPUTS)
    packed = pack_padded_sequence(u, torch.tensor(lengths), enforce_sorted=False)
    _, last = module(packed)
    h = last[0] if isinstance(last, tuple) else last
    gamma_h = torch.randn_like(h)
    (h * gamma_h).sum().backward()
    before = weights_of(module)
    optimizer.step()
    none = torch.zeros(B, (2 if module.bidirectional else 1) * H)
    oracle = Oracle(module, u, none, lengths, gamma_last=(gamma_h,))
    check(module, optimizer, oracle, before, weights_of(module))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", ["gru", "lstm", "bidirectional lstm layers"])
def test_given_initial_states_and_gradients_of_the_last_states_count(kind):
    module = make(kind)
    optimizer = gst.Sieve(
        module, torch.optim.SGD(module.parameters(), lr=1e-2), horizon=3, **ALWAYS
    )
    u = torch.randn(T, B, INPUTS)
    own = module.num_layers * (2 if module.bidirectional else 1)
    parts = 2 if isinstance(module, nn.LSTM) else 1
    initial = tuple(torch.randn(own, B, H) for _ in range(parts))
    outputs, last = module(u, initial if parts == 2 else initial[0])
    last = last if parts == 2 else (last,)
    gammas = tuple(torch.randn_like(part) for part in last)
    gamma = torch.randn(B, outputs.shape[-1])
    loss = last_gradient(module, outputs, gamma)
    (loss + sum((part * g).sum() for part, g in zip(last, gammas, strict=True))).backward()
    before = weights_of(module)
    optimizer.step()
    oracle = Oracle(module, u, gamma, [T] * B, initial, gammas, horizon=3)
    check(module, optimizer, oracle, before, weights_of(module))


@pytest.mark.usefixtures("float64")
def test_a_loss_on_every_step_is_judged_by_the_gradient_of_its_last_step_alone():
    module = make("gru")
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **ALWAYS)
    u = torch.randn(T, B, INPUTS)
    outputs, _ = module(u)
    gammas = torch.randn(T, B, H)
    (outputs * gammas).sum().backward()
    before = weights_of(module)
    optimizer.step()
    check(module, optimizer, Oracle(module, u, gammas[-1], [T] * B), before, weights_of(module))


@pytest.mark.usefixtures("float64")
def test_padding_without_packing_is_found_by_the_last_gradient_that_arrives():
    module = make("lstm")
    optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **ALWAYS)
    u, lengths = torch.randn(T, B, INPUTS), [7, 3, 5]
    outputs, _ = module(u)
    gamma = torch.randn(B, H)
    sum((outputs[n - 1, i] * gamma[i]).sum() for i, n in enumerate(lengths)).backward()
    before = weights_of(module)
    optimizer.step()
    check(module, optimizer, Oracle(module, u, gamma, lengths), before, weights_of(module))


@pytest.mark.usefixtures("float64")
def test_one_tanh_layer_has_the_Q_and_frozen_dS_of_the_core():
    """The core's network with the head's error as γ: Q is the same, and so is Lemma 1."""
    net = gs.SRN.random(INPUTS, H, 3, variance=0.3, seed=3, dtype=np.float64)
    module, head = nn.RNN(INPUTS, H), nn.Linear(H, 3)
    with torch.no_grad():
        module.weight_ih_l0.copy_(torch.from_numpy(net.w_in.T))
        module.weight_hh_l0.copy_(torch.from_numpy(net.w_rec.T))
        module.bias_ih_l0.copy_(torch.from_numpy(net.b))
        module.bias_hh_l0.zero_()
        head.weight.copy_(torch.from_numpy(net.w_out.T))
        head.bias.copy_(torch.from_numpy(net.b_out))
    model = nn.ModuleList([module, head])
    optimizer = gst.Sieve(
        model, torch.optim.SGD(model.parameters(), lr=1e-3), estimator="frozen", **ALWAYS
    )
    generator = np.random.default_rng(0)
    u, t = generator.standard_normal((T, B, INPUTS)), generator.integers(0, 3, B)
    flow = gs.backpropagate(net, u, t, engine="reference")
    update = flow.gradient.like(-1e-3 * flow.gradient.flat)
    change = gs.norm_change(flow, update, estimator="frozen")
    outputs, _ = module(torch.from_numpy(u))
    nn.functional.cross_entropy(head(outputs[-1]), torch.from_numpy(t), reduction="sum").backward()
    optimizer.step()
    assert pytest.approx(change.Q, rel=1e-9) == optimizer.last.Q
    assert optimizer.last.dS == pytest.approx(change.dS, rel=1e-9)


@pytest.mark.parametrize("kind", ["tanh", "gru", "lstm", "two lstm layers"])
def test_the_sign_and_size_survive_where_deltas_are_far_below_a_float(kind):
    """The same network in float32 and, as oracle, in float64; δ falls to some 10^-100."""
    verdicts = []
    for dtype in (torch.float32, torch.float64):
        module = forgetful(kind, dtype)
        optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-1), **ALWAYS)
        module(torch.randn(200, B, INPUTS).to(dtype))[0][-1].sum().backward()
        optimizer.step()
        verdicts.append(optimizer.last)
    single, double = verdicts
    assert single.Q > 45
    assert pytest.approx(double.Q, rel=1e-4) == single.Q
    assert single.relative == pytest.approx(double.relative, rel=1e-3)
    assert single.dS != 0
    assert (single.dS > 0) == (single.relative > 0)


@pytest.mark.usefixtures("float64")
def test_calls_between_two_steps_add_up_as_one_minibatch():
    """Gradient accumulation: two halves of a minibatch are judged as the whole is."""
    found = []
    for pieces in (1, 2):
        torch.manual_seed(0)
        module = make("gru")
        optimizer = gst.Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), **ALWAYS)
        u, gamma = torch.randn(T, 4, INPUTS), torch.randn(4, H)
        for part, weight in zip(u.chunk(pieces, 1), gamma.chunk(pieces), strict=True):
            (module(part)[0][-1] * weight).sum().backward()
        optimizer.step()
        found.append(optimizer.last)
    assert pytest.approx(found[1].Q, rel=1e-12) == found[0].Q
    assert found[0].dS == pytest.approx(found[1].dS, rel=1e-9)


@pytest.mark.usefixtures("float64")
def test_measuring_leaves_out_a_direction_that_no_gradient_of_its_own_last_step_reaches():
    """Reading outputs[-1] of a bidirectional module leaves the reverse one a single step."""
    module = make("bidirectional gru")
    stack = find_stacks(module)[0]
    recorder = Recorder([stack])
    module(torch.randn(T, B, INPUTS))[0][-1].sum().backward()
    policy = gs.Sieve("skip").at_work()
    measured = gather(stack, recorder.finished()[stack], policy, together=False)
    assert measured.count == B  # of the forward direction only
