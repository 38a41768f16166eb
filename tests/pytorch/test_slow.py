"""The policy "hold" around a PyTorch optimizer: slow Q, its gradient, and the steps it corrects.

Truth is the core's slow gradient for one tanh layer, and for the other cells finite differences of
a computation that shares no code with gradsieve.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small_modules import INPUTS, H, forgetful, make, weights_of
from stepwise_oracle import Oracle
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

import gradsieve as gs
import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument
from gradsieve.sieve import Reason
from gradsieve.torch.evidence import slow
from gradsieve.torch.evidence.gather import gather
from gradsieve.torch.evidence.slope import q_gradient
from gradsieve.torch.modules.record import Recorder
from gradsieve.torch.modules.stack import find_stacks

KINDS = (
    "tanh",
    "gru",
    "lstm",
    "projected lstm",
    "three tanh layers",
    "two lstm layers",
    "bidirectional gru",
    "bidirectional lstm layers",
)
T, B = 9, 3


def sgd(module: nn.Module, lr: float = 1e-9) -> torch.optim.SGD:
    return torch.optim.SGD(module.parameters(), lr=lr)


def hold(module: nn.Module, lr: float = 1e-9, **settings) -> gst.Sieve:
    return gst.Sieve(module, sgd(module, lr), policy="hold", **settings)


def slow_Q_and_gradient(
    module: nn.Module, recorder: Recorder, sieve: gs.Sieve
) -> tuple[float, dict[str, Tensor]]:
    """Of the calls that have been recorded; the gradient by name of the parameter."""
    ((stack, calls),) = recorder.finished().items()
    policy = sieve.at_work()
    measured = gather(stack, calls, policy, together=False)
    gradient = q_gradient(measured, policy, together=False)
    names = [name for name, _ in stack.module.named_parameters()]
    return measured.Q, dict(zip(names, gradient, strict=True))


def check(module: nn.RNNBase, recorder: Recorder, oracle: Oracle, sieve: gs.Sieve) -> None:
    """Q, and its derivative along two random directions."""
    Q, gradient = slow_Q_and_gradient(module, recorder, sieve)
    weights = weights_of(module)
    assert pytest.approx(oracle.slow_Q(weights, sieve.window), rel=1e-9) == Q
    for _ in range(2):
        direction = {name: torch.randn_like(value) for name, value in weights.items()}
        up, down = (
            oracle.slow_Q({n: weights[n] + step * direction[n] for n in weights}, sieve.window)
            for step in (1e-5, -1e-5)
        )
        slope = sum(float((gradient[name] * direction[name]).sum()) for name in weights)
        assert slope == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("horizon", "window"), [(None, 0.7), (5, 1.0), (6, 0.01)])
def test_slow_Q_and_its_gradient_are_those_of_the_definition(kind, horizon, window):
    module = make(kind)
    recorder = Recorder(find_stacks(module))
    u = torch.randn(T, B, INPUTS)
    outputs, _ = module(u)
    gamma = torch.randn(B, outputs.shape[-1])
    half = outputs.shape[-1] // 2
    ends = outputs[-1]
    if module.bidirectional:  # each direction at its own last step
        ends = torch.cat([outputs[-1, :, :half], outputs[0, :, half:]], -1)
    (ends * gamma).sum().backward()
    sieve = gs.Sieve(policy="hold", horizon=horizon, window=window)
    check(module, recorder, Oracle(module, u, gamma, [T] * B, horizon=horizon), sieve)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", ["tanh", "gru", "two lstm layers", "bidirectional gru"])
@pytest.mark.parametrize("horizon", [None, 4])
def test_each_packed_sequence_has_its_own_last_step_horizon_and_window(kind, horizon):
    """Of lengths 4, 9 and 6; with a horizon of 4 steps the shortest does not count."""
    module = make(kind)
    recorder = Recorder(find_stacks(module))
    lengths = [4, 9, 6]
    u = torch.randn(T, B, INPUTS)
    _, last = module(pack_padded_sequence(u, torch.tensor(lengths), enforce_sorted=False))
    h = last[0] if isinstance(last, tuple) else last
    gamma = torch.randn_like(h)
    (h * gamma).sum().backward()
    none = torch.zeros(B, (2 if module.bidirectional else 1) * H)
    oracle = Oracle(module, u, none, lengths, gamma_last=(gamma,), horizon=horizon)
    check(module, recorder, oracle, gs.Sieve(policy="hold", horizon=horizon))


def core_network(steps: int = 12) -> tuple[gs.SRN, nn.RNN, nn.Linear, np.ndarray, np.ndarray]:
    """The same network in both; with one output the direction of γ does not depend on weights."""
    net = gs.SRN.random(INPUTS, H, 1, output="linear", variance=0.2, seed=3, dtype=np.float64)
    module, head = nn.RNN(INPUTS, H), nn.Linear(H, 1)
    with torch.no_grad():
        module.weight_ih_l0.copy_(torch.from_numpy(net.w_in.T))
        module.weight_hh_l0.copy_(torch.from_numpy(net.w_rec.T))
        module.bias_ih_l0.copy_(torch.from_numpy(net.b))
        module.bias_hh_l0.zero_()
        head.weight.copy_(torch.from_numpy(net.w_out.T))
        head.bias.copy_(torch.from_numpy(net.b_out))
    generator = np.random.default_rng(0)
    u, t = generator.standard_normal((steps, B, INPUTS)), generator.standard_normal((B, 1))
    return net, module, head, u, t


@pytest.mark.usefixtures("float64")
def test_one_tanh_layer_has_the_slow_Q_and_the_slow_gradient_of_the_core():
    net, module, head, u, t = core_network()
    flow = gs.backpropagate(net, u, t, engine="reference")
    recorder = Recorder(find_stacks(module))
    error = head(module(torch.from_numpy(u))[0][-1]) - torch.from_numpy(t)
    error.square().sum().backward()
    for window in (0.3, 0.7):
        Q, found = slow_Q_and_gradient(module, recorder, gs.Sieve(policy="hold", window=window))
        expected = gs.slow_gradient(flow, window=window)
        assert pytest.approx(gs.slow_factor(flow, window=window), rel=1e-9) == Q
        for name, truth in (
            ("weight_ih_l0", expected.w_in.T),
            ("weight_hh_l0", expected.w_rec.T),
            ("bias_ih_l0", expected.b),
            ("bias_hh_l0", expected.b),
        ):
            np.testing.assert_allclose(found[name].numpy(), truth, rtol=1e-7, atol=1e-10)


@pytest.mark.usefixtures("float64")
def test_slow_Q_is_the_cores_where_a_delta_is_below_any_number():
    net, module, head, u, t = core_network(steps=1500)
    flow = gs.backpropagate(net, u, t, engine="reference")
    assert not flow.deltas[:450].any()
    optimizer = hold(module, window=0.3)
    error = head(module(torch.from_numpy(u))[0][-1]) - torch.from_numpy(t)
    error.square().sum().backward()
    optimizer.step()
    assert optimizer.last.Q > 320
    assert pytest.approx(gs.slow_factor(flow, window=0.3), rel=1e-9) == optimizer.last.Q


@pytest.mark.usefixtures("float64")
def test_a_delta_that_turns_is_out_of_range_for_hold_and_in_range_for_skip():
    """Rotations by 60° a step, in units that are as good as linear."""
    half, root = 0.5, math.sqrt(0.75)
    module = nn.RNN(2, 2, bias=False)
    with torch.no_grad():
        module.weight_hh_l0.copy_(torch.tensor([[half, -root], [root, half]]))
    found = {}
    for policy in ("skip", "hold"):
        optimizer = gst.Sieve(module, sgd(module, 0.0), policy=policy)
        module.zero_grad()
        module(1e-6 * torch.randn(40, B, 2))[0][-1].sum().backward()
        optimizer.step()
        optimizer.close()
        found[policy] = optimizer.last
    assert abs(found["skip"].Q) < 1e-3
    assert found["skip"].reason is Reason.IN_RANGE
    assert found["hold"].Q > 2
    assert found["hold"].reason is Reason.VANISHED_STUCK  # a rate of 0 allows no correction


@pytest.mark.parametrize("kind", ["tanh", "gru", "two lstm layers"])
def test_slow_Q_survives_where_deltas_are_far_below_a_float(kind):
    """The same network in float32 and, as oracle, in float64; δ falls to some 10^-100."""
    found = []
    for dtype in (torch.float32, torch.float64):
        module = forgetful(kind, dtype)
        recorder = Recorder(find_stacks(module))
        u = torch.randn(150, B, INPUTS).to(dtype)
        outputs, _ = module(u)
        outputs[-1].sum().backward()
        # A short window, far from the near end, so that the slow gradient itself is that small.
        sieve = gs.Sieve(policy="hold", window=0.1)
        found.append(slow_Q_and_gradient(module, recorder, sieve)[0])
    single, double = found
    truth = Oracle(module, u, torch.ones(B, H, dtype=dtype), [150] * B)
    torch.set_default_dtype(dtype)
    assert single > 45
    assert double == pytest.approx(truth.slow_Q(weights_of(module), 0.1), rel=1e-9)
    assert single == pytest.approx(double, rel=1e-4)


@pytest.mark.usefixtures("float64")
def test_examples_of_which_nothing_slow_is_left_do_not_count():
    """Relu units that are all off at a late step let no gradient through to those before it."""
    module = nn.RNN(1, H, nonlinearity="relu")
    with torch.no_grad():
        module.weight_ih_l0.fill_(1.0)
    u = 1 + torch.rand(T, B, 1)
    u[T - 2, 0] = -1e3
    sieve = gs.Sieve(policy="hold", window=0.5)
    readings = []
    for inputs in (u, u[:, 1:]):
        recorder = Recorder(find_stacks(module))
        module(inputs)[0][-1].sum().backward()
        readings.append(slow_Q_and_gradient(module, recorder, sieve))
        recorder.close()
    (Q, gradient), (others_Q, others_gradient) = readings
    assert pytest.approx(others_Q, rel=1e-12) == Q
    for name, value in gradient.items():
        torch.testing.assert_close(value, others_gradient[name])
    optimizer = hold(module)
    before = weights_of(module)
    module(u[:, :1])[0][-1].sum().backward()
    optimizer.step()
    assert math.isinf(optimizer.last.Q)
    assert optimizer.last.reason is Reason.VANISHED_STUCK
    for name, value in module.named_parameters():
        assert torch.allclose(value, before[name], atol=1e-6)  # the plain step, and no more


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", ["tanh", "lstm", "bidirectional gru"])
def test_a_held_step_turns_slow_Q_back_by_the_steer_rate(kind):
    module, rate = make(kind), 1e-4
    u = torch.randn(T, B, INPUTS)
    directions = 2 if module.bidirectional else 1
    gamma = torch.randn(directions, B, H)

    def backward() -> None:
        module.zero_grad()
        last = module(u)[1]
        h = last[0] if isinstance(last, tuple) else last
        (h * gamma).sum().backward()

    for q_range, way in (((-9, -8), 1), ((8, 9), -1)):  # called vanished, then exploded
        optimizer = hold(module, q_range=q_range, steer_rate=rate, limit=math.inf)
        backward()
        optimizer.step()
        assert optimizer.last.keep
        assert optimizer.last.reason.corrected
        assert optimizer.counts["corrected"] == 1
        optimizer.close()
        looking = hold(module, lr=0.0, q_range=(-1e6, 1e6))
        backward()
        looking.step()
        looking.close()
        turned = -math.log(10) * (looking.last.Q - optimizer.last.Q)
        assert turned == pytest.approx(way * rate, rel=1e-2)


@pytest.mark.usefixtures("float64")
def test_two_calls_are_held_as_one_minibatch():
    found = []
    for pieces in (1, 2):
        torch.manual_seed(0)
        module = make("gru")
        optimizer = hold(module, lr=1e-6, q_range=(-9, -8))
        u, gamma = torch.randn(T, 4, INPUTS), torch.randn(4, H)
        for part, weight in zip(u.chunk(pieces, 1), gamma.chunk(pieces), strict=True):
            (module(part)[0][-1] * weight).sum().backward()
        optimizer.step()
        assert optimizer.counts["corrected"] == 1
        found.append((optimizer.last.Q, weights_of(module)))
    assert pytest.approx(found[1][0], rel=1e-12) == found[0][0]
    for name, value in found[0][1].items():
        torch.testing.assert_close(value, found[1][1][name], rtol=1e-9, atol=1e-12)


def test_every_module_of_a_model_is_held_by_itself_with_closures_and_a_schedule():
    model = nn.ModuleDict({"first": gst.RNN(3, 6), "second": nn.LSTM(6, 4)})
    optimizer = hold(model, lr=1e-3, every=2)
    u = torch.randn(30, 5, 3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model["second"](model["first"](u)[0])[0][-1].square().sum()
        loss.backward()
        return loss

    for _ in range(4):
        assert optimizer.step(closure) > 0
        if optimizer.counts["steps"] % 2:
            assert set(optimizer.verdicts) == {"first", "second"}
            assert all(one.reason.corrected for one in optimizer.verdicts.values())
    assert optimizer.counts["judged"] == 2
    assert optimizer.counts["corrected"] == 2


def test_the_scale_of_mixed_precision_changes_nothing():
    found = []
    for scale in (1.0, 2.0**10):
        torch.manual_seed(0)
        model = nn.GRU(3, 6)
        optimizer = hold(model, lr=1e-3)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        scaler.scale(model(torch.randn(20, 5, 3))[0][-1].square().sum()).backward()
        scaler.step(optimizer)
        assert optimizer.counts["corrected"] == 1
        found.append((optimizer.last.Q, weights_of(model)))
    assert pytest.approx(found[1][0], rel=1e-5) == found[0][0]
    for name, value in found[0][1].items():
        torch.testing.assert_close(value, found[1][1][name])


def test_held_training_keeps_slow_Q_where_plain_training_lets_it_go():
    finals = {}
    for name, settings in {"plain": {"q_range": (-1e6, 1e6)}, "hold": {}}.items():
        torch.manual_seed(0)
        module = nn.RNN(3, 10)
        optimizer = gst.Sieve(module, sgd(module, 1e-3), policy="hold", steer_rate=0.1, **settings)
        for _ in range(120):
            optimizer.zero_grad()
            module(torch.randn(25, 5, 3))[0][-1].square().sum().backward()
            optimizer.step()
        finals[name] = optimizer.last.Q
    assert finals["plain"] > 2.5
    assert finals["hold"] < 1.5


def test_each_policy_has_its_own_range_and_a_window_outside_the_horizon_is_refused():
    module = nn.RNN(2, 3)
    ranges = {
        policy: gst.Sieve(module, sgd(module), policy=policy).sieve.range
        for policy in ("skip", "steer", "hold", "auto")
    }
    assert ranges == {
        "skip": (-1, 1),
        "steer": (-1, 1),
        "hold": (-2, 0.5),
        "auto": gs.Sieve("auto").range,
    }
    assert hold(module, q_range=(-1, 1)).sieve.q_range == (-1, 1)
    assert hold(module, window=0.4).sieve.window == 0.4
    for window in (0, 1.5, math.nan):
        with pytest.raises(InvalidArgument, match="window is"):
            hold(module, window=window)


def test_sequences_too_short_to_have_a_slow_gradient_are_kept_and_said():
    module = nn.RNN(2, 3)
    optimizer = hold(module, horizon=50)
    module(torch.randn(10, 2, 2))[0][-1].sum().backward()
    with pytest.warns(UserWarning, match="no sequence is longer"):
        optimizer.step()
    assert optimizer.last.keep
    assert optimizer.counts["unjudged"] == 1


def test_exponents_of_32_bits_are_taken():
    """NumPy 2.5 refuses a Python integer that the array's type does not hold."""
    squares, exponents = np.array([[4.0, 0.0]]), np.array([[3, 0]], np.int32)
    logs = slow._log_norms(squares, exponents)
    assert logs.tolist() == [pytest.approx(math.log10(16)), -math.inf]
