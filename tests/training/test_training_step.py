"""One minibatch: what is proposed, what is applied, what a skip leaves behind."""

import math

import numpy as np
import pytest
import torch

import gradsieve as gs
from gradsieve.sieve import POLICIES, Reason
from gradsieve.training.step import Stepper
from oracles import Autograd, every_engine, random_problem

RATE = 1e-3


@pytest.fixture
def problem():
    return random_problem(11, steps=12, batch=8, inputs=2, hidden=9, outputs=3, output="softmax")


def stepper_for(problem, engine="reference", **settings):
    recipe = gs.Recipe().replaced(**{"learning_rate": RATE} | settings)
    return Stepper(problem[0].copy(), recipe, engine)


def sieve_around(problem, proposal, lead_back, policy="skip", **settings):
    """A sieve out of whose range Q lies, on the side where this proposal does (not) lead back."""
    net, u, t, starts = problem
    flow = gs.backpropagate(net, u, t, "reference", starts)
    change = gs.norm_change(flow, net.like(proposal), None, settings.get("estimator", "full"))
    vanished = (change.dS > 0) == lead_back
    low = change.Q - 2 if vanished else change.Q + 1
    return gs.Sieve(policy, (low, low + 1), **settings), 1 if vanished else -1


def plain_gradient(problem):
    truth = Autograd(*problem)
    return truth.gradient_of(truth.loss)


@every_engine
def test_without_a_sieve_a_step_is_momentum_on_the_gradient_of_autograd(engine, problem):
    net, u, t, starts = problem
    stepper = stepper_for(problem, engine, momentum=0.9)
    weights, velocity = net.flat.copy(), np.zeros_like(net.flat)
    for _ in range(4):
        truth = Autograd(net.replaced(weights), u, t)
        velocity = 0.9 * velocity - RATE * truth.gradient_of(truth.loss)
        weights = weights + velocity
        outcome = stepper.step(u, t, starts)
        assert outcome.verdict.keep
        assert outcome.loss == pytest.approx(truth.loss.item() / 8)
        np.testing.assert_allclose(stepper.net.flat, weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(stepper.descent.velocity, velocity, rtol=1e-7, atol=1e-12)


@every_engine
def test_without_a_sieve_the_q_of_eq_14_is_measured(engine, problem):
    net, u, t, starts = problem
    verdict = stepper_for(problem, engine).step(u, t, starts).verdict
    expected = gs.q_factor(gs.backpropagate(net, u, t, engine, starts))
    assert (verdict.reason, verdict.Q) == (Reason.NO_SIEVE, pytest.approx(expected))


@every_engine
def test_clipping_shortens_a_long_gradient_and_leaves_a_short_one(engine, problem):
    net, u, t, starts = problem
    gradient = plain_gradient(problem)
    norm = float(np.linalg.norm(gradient))
    for clip, length in ((norm / 3, norm / 3), (norm * 3, norm)):
        stepper = stepper_for(problem, engine, clip=clip)
        outcome = stepper.step(u, t, starts)
        assert outcome.gradient_norm == pytest.approx(norm)
        expected = -RATE * gradient * (length / norm)
        np.testing.assert_allclose(stepper.net.flat - net.flat, expected, rtol=1e-6, atol=1e-12)


@every_engine
def test_scaled_steps_are_those_of_adam_without_its_momentum(engine, problem):
    net, u, t, starts = problem
    stepper = stepper_for(problem, engine, momentum=0.0, rms_decay=0.9)
    weights = torch.tensor(net.flat.copy(), requires_grad=True)
    adam = torch.optim.Adam([weights], lr=RATE, betas=(0.0, 0.9), eps=1e-12)
    for _ in range(4):
        truth = Autograd(net.replaced(weights.detach().numpy()), u, t)
        weights.grad = torch.tensor(truth.gradient_of(truth.loss))
        adam.step()
        stepper.step(u, t, starts)
        np.testing.assert_allclose(stepper.net.flat, weights.detach(), rtol=1e-6, atol=1e-9)


@every_engine
def test_a_scaled_step_is_clipped_after_it_was_scaled(engine, problem):
    net, u, t, starts = problem
    scaled = np.sign(plain_gradient(problem))  # the first gradient over the root of its square
    stepper = stepper_for(problem, engine, rms_decay=0.9, clip=0.5)
    stepper.step(u, t, starts)
    expected = -RATE * 0.5 * scaled / np.linalg.norm(scaled)
    np.testing.assert_allclose(stepper.net.flat - net.flat, expected, rtol=1e-5, atol=1e-9)


def test_an_exploded_gradient_counts_as_one_of_the_bounds_length_in_the_scaling(problem):
    _, u, t, starts = problem
    stepper = stepper_for(problem, momentum=0.0, rms_decay=0.9, rms_bound=2.0)
    square = stepper.descent.mean_square
    square.values[:] = usual = 1e-6 * plain_gradient(problem) ** 2  # as if seen once
    square.seen = 1
    stepper.step(u, t, starts)
    expected = 0.9 * usual + 0.1 * 4 * usual / (1 - 0.9)
    np.testing.assert_allclose(square.values, expected, rtol=1e-4)


def test_what_is_skipped_is_seen_by_the_scaling_once(problem):
    _, u, t, starts = problem
    proposal = -np.sign(plain_gradient(problem))
    sieve, _ = sieve_around(problem, proposal, lead_back=False, stall_after=1)
    stepper = stepper_for(problem, sieve=sieve, rms_decay=0.9)
    assert stepper.step(u, t, starts).stalled
    square = stepper.descent.mean_square
    assert square.seen == 1
    np.testing.assert_allclose(square.values, 0.1 * plain_gradient(problem) ** 2)


@every_engine
@pytest.mark.parametrize("estimator", ["full", "measured"])
@pytest.mark.parametrize("lead_back", [True, False])
def test_an_update_is_made_if_and_only_if_it_leads_back(engine, estimator, lead_back, problem):
    net, u, t, starts = problem
    proposal = -RATE * plain_gradient(problem)
    sieve, _ = sieve_around(problem, proposal, lead_back, estimator=estimator)
    stepper = stepper_for(problem, engine, sieve=sieve)
    outcome = stepper.step(u, t, starts)
    assert outcome.verdict.keep is lead_back
    moved = stepper.net.flat - net.flat
    np.testing.assert_allclose(
        moved, proposal if lead_back else 0 * proposal, rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize(("on_skip", "factor"), [("keep", 1.0), ("decay", 0.9), ("reset", 0.0)])
def test_a_skip_leaves_the_weights_and_does_to_the_velocity_what_was_chosen(
    on_skip, factor, problem
):
    net, u, t, starts = problem
    velocity = 1e-4 * np.random.default_rng(0).normal(size=net.flat.size)
    proposal = 0.9 * velocity - RATE * plain_gradient(problem)
    sieve, _ = sieve_around(problem, proposal, lead_back=False, on_skip=on_skip)
    stepper = stepper_for(problem, sieve=sieve, momentum=0.9)
    stepper.descent.velocity = velocity.copy()
    outcome = stepper.step(u, t, starts)
    assert not outcome.verdict.keep
    assert np.array_equal(stepper.net.flat, net.flat)
    np.testing.assert_allclose(stepper.descent.velocity, factor * velocity)


@every_engine
def test_a_stall_is_said_and_broken_by_the_plain_update(engine, problem):
    net, u, t, starts = problem
    proposal = -RATE * plain_gradient(problem)
    sieve, _ = sieve_around(problem, proposal, lead_back=False, stall_after=4)
    stepper = stepper_for(problem, engine, sieve=sieve, momentum=0.9)
    outcomes = [stepper.step(u, t, starts) for _ in range(4)]
    assert [outcome.verdict.keep for outcome in outcomes] == [False, False, False, True]
    assert [outcome.stalled for outcome in outcomes] == [False, False, False, True]
    assert outcomes[-1].verdict.reason is Reason.STALL_BROKEN
    np.testing.assert_allclose(stepper.net.flat - net.flat, proposal, rtol=1e-6, atol=1e-12)


def test_no_run_of_skips_is_ever_longer_than_the_guard_allows(problem):
    _, u, t, starts = problem
    sieve = gs.Sieve("skip", (50, 51), stall_after=5)  # so far that only falling norms pass
    stepper = stepper_for(problem, sieve=sieve, learning_rate=0.05)
    kept = [stepper.step(u, t, starts).verdict.keep for _ in range(100)]
    longest = max(len(run) for run in "".join("k" if keep else "." for keep in kept).split("k"))
    assert longest < 5


@pytest.mark.parametrize("policy", ["off", *POLICIES])
@pytest.mark.parametrize(
    ("engine", "dtype"),
    [("native", np.float32), ("native", np.float64), ("reference", np.float64)],
)
def test_what_is_not_finite_is_never_applied_and_is_counted(engine, policy, dtype):
    net, u, t, starts = random_problem(1, 20, 4, 2, 6, 2, "linear")
    largest = np.finfo(dtype).max
    net.w_out[:] = 0.01 * largest
    net.w_rec[:] *= 100
    recipe = gs.Recipe().replaced(sieve=policy)
    if policy != "off":
        recipe = recipe.replaced(stall_after=3)
    stepper = Stepper(net.astype(dtype), recipe, engine)
    stepper.descent.velocity = np.ones_like(stepper.descent.velocity)
    before = stepper.net.flat.copy()
    outcomes = [stepper.step(u.astype(dtype), t.astype(dtype), starts) for _ in range(7)]
    assert {outcome.verdict.reason for outcome in outcomes} == {Reason.NOT_FINITE}
    assert not any(outcome.verdict.keep for outcome in outcomes)
    assert sum(outcome.stalled for outcome in outcomes) == (0 if policy == "off" else 2)
    assert np.array_equal(stepper.net.flat, before)
    assert not stepper.descent.velocity.any()


@pytest.mark.parametrize("policy", ["off", "skip"])
def test_a_velocity_that_would_leave_the_weights_not_finite_is_forgotten(policy, problem):
    """Kept, it would be proposed again and again, and nothing would ever move."""
    net, u, t, starts = problem
    stepper = stepper_for(problem, sieve=policy)
    stepper.descent.velocity = np.full_like(net.flat, 1e308)
    net.flat[0] = stepper.net.flat[0] = 1e308
    assert stepper.step(u, t, starts).verdict.reason is Reason.NOT_FINITE
    assert np.array_equal(stepper.net.flat, net.flat)
    assert not stepper.descent.velocity.any()


@every_engine
@pytest.mark.parametrize("policy", ["off", *POLICIES])
def test_weights_stay_finite_at_an_absurd_learning_rate(engine, policy, problem):
    net, u, t, starts = problem
    recipe = gs.Recipe().replaced(learning_rate=1e38, sieve=policy)
    if policy != "off":
        recipe = recipe.replaced(q_range=(-9, -8))
    stepper = Stepper(net.astype(np.float32), recipe, engine)
    reasons = set()
    for _ in range(30):
        reasons.add(stepper.step(u.astype(np.float32), t, starts).verdict.reason)
        assert np.isfinite(stepper.net.flat).all()
        assert np.isfinite(stepper.descent.velocity).all()
    assert Reason.NOT_FINITE in reasons


@pytest.mark.parametrize("in_range", [True, False])
def test_max_change_bounds_what_is_applied(in_range, problem):
    net, u, t, starts = problem
    proposal = -RATE * plain_gradient(problem)
    sieve, _ = sieve_around(problem, proposal, lead_back=True)
    q_range = (-50, 50) if in_range else sieve.q_range
    flow = gs.backpropagate(net, u, t, "reference")

    def applied_change(max_change):
        sieve = gs.Sieve("skip", q_range, max_change=max_change)
        stepper = stepper_for(problem, sieve=sieve)
        verdict = stepper.step(u, t, starts).verdict
        moved = net.like(stepper.net.flat - net.flat)
        return verdict, abs(gs.norm_change(flow, moved).relative)

    verdict, change = applied_change(None)
    assert verdict.keep
    assert change > 0
    verdict, wide = applied_change(change * 1.01)
    assert verdict.keep
    assert wide == pytest.approx(change, rel=1e-6)
    verdict, none = applied_change(change * 0.99)
    assert (verdict.keep, verdict.reason, none) == (False, Reason.TOO_LARGE, 0)


@every_engine
@pytest.mark.parametrize("estimator", ["full", "frozen"])
@pytest.mark.parametrize("side", [1, -1])
def test_select_trains_on_exactly_the_examples_that_lead_back(engine, estimator, side, problem):
    net, u, t, starts = problem
    flow = gs.backpropagate(net, u, t, "reference")
    Q = gs.q_factor(flow)
    q_range = (Q - 2, Q - 1) if side > 0 else (Q + 1, Q + 2)
    sieve = gs.Sieve("select", q_range, estimator=estimator)
    expected = np.zeros_like(net.flat)
    helpful = 0
    for example in range(u.shape[1]):
        pick = slice(example, example + 1)
        truth = Autograd(net, u[:, pick], t[pick])
        own = -RATE * truth.gradient_of(truth.loss)
        if side * gs.norm_change(flow, net.like(own), estimator=estimator).dS > 0:
            expected += own
            helpful += 1
    assert 0 < helpful < u.shape[1], "the problem must have examples of both kinds"
    stepper = stepper_for(problem, engine, sieve=sieve)
    verdict = stepper.step(u, t, starts).verdict
    assert verdict.keep
    moved = stepper.net.flat - net.flat
    np.testing.assert_allclose(moved, expected, rtol=1e-6, atol=1e-12)
    predicted = gs.norm_change(flow, net.like(moved), estimator=estimator).dS
    assert predicted * side > 0
    assert verdict.dS == pytest.approx(predicted, rel=1e-6)


def test_select_skips_where_no_example_helps(problem):
    net, u, t, starts = problem
    one = net, u[:, :1], t[:1], starts
    sieve, side = sieve_around(one, -RATE * plain_gradient(one), lead_back=False, policy="select")
    stepper = stepper_for(one, sieve=sieve)
    verdict = stepper.step(*one[1:]).verdict
    assert not verdict.keep
    assert verdict.reason is (
        Reason.VANISHED_NONE_HELPS if side > 0 else Reason.EXPLODED_NONE_HELPS
    )
    assert np.array_equal(stepper.net.flat, net.flat)


@every_engine
@pytest.mark.parametrize("lead_back", [True, False])
@pytest.mark.parametrize("rate", [1e-5, 0.02])
def test_a_steered_update_turns_the_ratio_back_by_the_steer_rate(engine, lead_back, rate, problem):
    net, u, t, starts = problem
    learning_rate = 1e-7  # too small to do it by itself
    proposal = -learning_rate * plain_gradient(problem)
    sieve, side = sieve_around(
        problem, proposal, lead_back, "steer", steer_rate=rate, limit=math.inf
    )
    stepper = stepper_for(problem, engine, sieve=sieve, learning_rate=learning_rate)
    assert stepper.step(u, t, starts).verdict.keep
    moved = net.like(stepper.net.flat - net.flat)
    flow = gs.backpropagate(net, u, t, "reference")
    after = gs.backpropagate(stepper.net, u, t, "reference")
    predicted = -math.log(10) * gs.norm_change(flow, moved).dQ
    assert predicted == pytest.approx(side * rate, rel=1e-5)
    made = -math.log(10) * (gs.q_factor(after) - gs.q_factor(flow))
    assert made == pytest.approx(side * rate, rel=1e-3 if rate < 1e-3 else 0.2)
    correction = net.like(moved.flat - proposal)
    np.testing.assert_allclose(correction.w_out, 0, atol=1e-15)
    np.testing.assert_allclose(correction.b_out, 0, atol=1e-15)
    # The smallest change that does it lies along the slope of Q: any other has a part across it.
    slope = gs.norm_gradient(flow)
    slope.w_out[:] = 0
    slope.b_out[:] = 0
    cosine = (slope.flat @ correction.flat) / np.linalg.norm(slope.flat)
    assert abs(cosine) == pytest.approx(np.linalg.norm(correction.flat), rel=1e-6)


@every_engine
@pytest.mark.parametrize("side", [1, -1])
def test_holding_turns_the_slow_ratio_back_by_the_steer_rate(engine, side, problem):
    net, u, t, starts = problem
    before = gs.slow_factor(gs.backpropagate(net, u, t, "reference"))
    low = before - 2 if side > 0 else before + 1
    sieve = gs.Sieve("hold", (low, low + 1), steer_rate=1e-4, limit=math.inf)
    stepper = stepper_for(problem, engine, sieve=sieve, learning_rate=1e-9)
    outcome = stepper.step(u, t, starts)
    assert outcome.verdict.keep
    assert abs(outcome.verdict.Q - before) < 1e-9
    after = gs.slow_factor(gs.backpropagate(stepper.net, u, t, "reference"))
    assert -math.log(10) * (after - before) == pytest.approx(side * 1e-4, rel=1e-2)


@pytest.mark.parametrize("policy", ["steer", "hold"])
@pytest.mark.parametrize("q_range", [(-50, 50), None])
def test_steering_leaves_an_update_in_range_or_already_leading_back(policy, q_range, problem):
    net, u, t, starts = problem
    proposal = -0.1 * plain_gradient(problem)
    flow = gs.backpropagate(net, u, t, "reference")
    if q_range is None:
        Q, slope = gs.q_factor(flow), gs.norm_gradient(flow)
        if policy == "hold":
            Q, slope = gs.slow_factor(flow), gs.slow_gradient(flow)
        dQ = slope.flat @ proposal
        q_range = (Q - 2, Q - 1) if dQ < 0 else (Q + 1, Q + 2)
        assert abs(dQ) * math.log(10) > 1e-4
    sieve = gs.Sieve(policy, q_range, steer_rate=1e-4)
    stepper = stepper_for(problem, sieve=sieve, learning_rate=0.1)
    assert stepper.step(u, t, starts).verdict.keep
    np.testing.assert_allclose(stepper.net.flat - net.flat, proposal, rtol=1e-9, atol=1e-12)


@every_engine
@pytest.mark.parametrize("policy", ["off", *POLICIES])
@pytest.mark.parametrize("output", ["softmax", "linear"])
def test_targets_at_every_step_and_unequal_lengths_pass_through_every_policy(
    engine, policy, output
):
    net, u, t, starts = random_problem(
        4, 10, 6, 2, 7, 3, output, per_step=True, unequal=True
    )  # fmt: skip
    starts[0] = 0
    recipe = gs.Recipe().replaced(learning_rate=RATE, sieve=policy)
    if policy != "off":
        recipe = recipe.replaced(q_range=(-0.01, 0.01), horizon=5, stall_after=5)
    stepper = Stepper(net.copy(), recipe, engine)
    outcomes = [stepper.step(u, t, starts) for _ in range(20)]
    assert any(outcome.verdict.keep for outcome in outcomes)
    assert all(math.isfinite(outcome.loss) for outcome in outcomes)
    assert outcomes[-1].loss < outcomes[0].loss


@pytest.mark.parametrize("policy", POLICIES)
def test_a_horizon_beyond_the_sequence_is_refused_under_every_policy(policy, problem):
    _, u, t, starts = problem
    stepper = stepper_for(problem, sieve=gs.Sieve(policy=policy, horizon=12))
    with pytest.raises(gs.InvalidArgument, match="1 … 11"):
        stepper.step(u, t, starts)
