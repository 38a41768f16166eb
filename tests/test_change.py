"""S, dS, Q, dQ and contributions: against the Lemma's double sum, autograd and differences."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from oracles import Autograd, every_engine, random_problem, random_update

every_estimator = pytest.mark.parametrize("estimator", ["full", "frozen"])


@st.composite
def problems(draw):
    """A problem whose far deltas are not zero, and a horizon."""
    steps = draw(st.integers(2, 12))
    net, u, t, _ = random_problem(
        draw(st.integers(0, 2**32)),
        steps=steps,
        batch=draw(st.integers(1, 10)),
        inputs=draw(st.integers(1, 3)),
        hidden=draw(st.sampled_from([1, 2, 5, 8, 17, 33])),
        outputs=draw(st.integers(2, 4)),
        output=draw(st.sampled_from(["softmax", "linear"])),
        gain=draw(st.sampled_from([0.3, 1.0, 2.0])),
    )
    horizon = draw(st.integers(1, steps - 1))
    starts = None
    if draw(st.booleans()):
        starts = np.random.default_rng(steps).integers(0, steps - horizon, u.shape[1])
    return net, u, t, starts, horizon


def lemma_1(flow, dw_rec, horizon):
    """dS by the paper's Eq. 4–6: a sum over i of products over j, with dw_rec where i = j."""
    T = flow.length
    dS = 0.0
    for example in range(flow.u.shape[1]):
        D = {n: np.diag(1 - flow.states[n, example] ** 2) for n in range(1, T + 1)}
        if flow.starts is not None:
            D |= {n: 0 * D[n] for n in range(1, flow.starts[example] + 1)}
        delta = flow.deltas[T - 1, example]
        g, dg = delta, 0.0
        for j in range(1, horizon + 1):
            g = D[T - j] @ flow.net.w_rec @ g
        for i in range(1, horizon + 1):
            product = delta
            for j in range(1, horizon + 1):
                v = dw_rec if i == j else flow.net.w_rec
                product = D[T - j] @ v @ product
            dg = dg + product
        dS += g @ dg
    return dS


@every_engine
@given(problem=problems(), seed=st.integers(0, 99))
def test_frozen_dS_is_the_double_sum_of_lemma_1(engine, problem, seed):
    net, u, t, starts, horizon = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    update = random_update(net, seed)
    change = gs.norm_change(flow, update, horizon, estimator="frozen")
    size = change.S * np.abs(update.w_rec).sum()
    expected = lemma_1(flow, update.w_rec, horizon)
    assert change.dS == pytest.approx(expected, rel=1e-8, abs=1e-9 * size)


@every_engine
@given(problem=problems(), seed=st.integers(0, 99))
def test_full_dS_and_dQ_are_those_of_autograd_through_autograd(engine, problem, seed):
    net, u, t, starts, horizon = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    update = random_update(net, seed)
    change = gs.norm_change(flow, update, horizon)
    truth = Autograd(net, u, t, starts)
    S, Q = truth.S(horizon), truth.Q(horizon)
    dS, dQ = (truth.gradient_of(value) @ update.flat for value in (S, Q))
    np.testing.assert_allclose(change.S, S.item(), rtol=1e-9)
    np.testing.assert_allclose(change.Q, Q.item(), rtol=1e-9, atol=1e-9)
    assert change.dS == pytest.approx(dS, rel=1e-7, abs=1e-8 * change.S)
    assert change.relative == pytest.approx(dS / (2 * S.item()), rel=1e-7, abs=1e-8)
    assert change.dQ == pytest.approx(dQ, rel=1e-7, abs=1e-8)


@every_engine
@pytest.mark.parametrize("output", ["softmax", "linear"])
@pytest.mark.parametrize("horizon", [1, 6, 14])
def test_full_dS_and_dQ_are_central_differences(engine, output, horizon):
    net, u, t, _ = random_problem(8, 15, 5, 2, 12, 3, output)
    update = random_update(net, 1)

    def measured(step):
        moved = net.replaced(net.flat + step * update.flat)
        return gs.norm_change(gs.backpropagate(moved, u, t, engine=engine), update, horizon)

    change, above, below = measured(0), measured(1e-6), measured(-1e-6)
    assert change.dS == pytest.approx((above.S - below.S) / 2e-6, rel=1e-5)
    assert change.dQ == pytest.approx((above.Q - below.Q) / 2e-6, rel=1e-5)


@every_engine
@given(problem=problems(), seed=st.integers(0, 99), size=st.sampled_from([1e-6, 1e-3, 0.3]))
def test_measured_changes_are_those_of_autograd_at_the_moved_weights(engine, problem, seed, size):
    net, u, t, starts, horizon = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    update = random_update(net, seed, size)
    change = gs.norm_change(flow, update, horizon, estimator="measured")
    before, after = (
        Autograd(which, u, t, starts) for which in (net, net.replaced(net.flat + update.flat))
    )
    (S, Q), (moved_S, moved_Q) = (
        (truth.S(horizon).item(), truth.Q(horizon).item()) for truth in (before, after)
    )
    np.testing.assert_allclose([change.S, change.Q], [S, Q], rtol=1e-9, atol=1e-12)
    assert change.dS == pytest.approx(moved_S - S, rel=1e-6, abs=1e-10 * S)
    assert change.dQ == pytest.approx(moved_Q - Q, rel=1e-6, abs=1e-10)
    assert change.relative == pytest.approx(math.log(moved_S / S) / 2, rel=1e-6, abs=1e-10)


@every_engine
def test_a_small_update_is_measured_as_it_is_predicted_and_leaves_the_network_alone(engine):
    net, u, t, _ = random_problem(8, 15, 5, 2, 12, 3, "softmax")
    flow = gs.backpropagate(net, u, t, engine=engine)
    weights, update = net.flat.copy(), random_update(net, 1, 1e-7)
    full, measured = (
        gs.norm_change(flow, update, estimator=estimator) for estimator in ("full", "measured")
    )
    for name in ("dS", "relative", "dQ"):
        assert getattr(measured, name) == pytest.approx(getattr(full, name), rel=1e-4)
    assert np.array_equal(net.flat, weights)
    assert np.array_equal(flow.net.flat, weights)


@every_engine
def test_the_sign_of_a_measured_change_survives_where_S_underflows(engine):
    net, u, t, _ = random_problem(0, 1000, 2, 1, 3, 2, "softmax")
    net.b[:] = 5 * np.sign(net.b)  # saturated: S is far below what a float holds
    flow = gs.backpropagate(net, 0.3 * u, t, engine=engine)
    update = random_update(net, 3, 1e-6)
    for sign in (1, -1):
        there = net.like(sign * update.flat)
        full, measured = (
            gs.norm_change(flow, there, estimator=estimator) for estimator in ("full", "measured")
        )
        assert abs(full.dS) < 1e-300
        assert measured.dS * full.dS >= 0
        assert measured.dS != 0
        assert math.copysign(1, measured.dS) == math.copysign(1, full.dS)
        assert measured.relative == pytest.approx(full.relative, rel=1e-2)


@every_engine
def test_a_change_that_cannot_be_measured_is_no_number(engine):
    net, u, t, _ = random_problem(2, 9, 4, 2, 7, 3, "softmax")
    dead = net.like(-net.flat)  # every weight becomes zero, and so does every far delta
    change = gs.norm_change(gs.backpropagate(net, u, t, engine), dead, estimator="measured")
    assert math.isnan(change.dS)
    assert math.isnan(change.relative)


@every_engine
@given(problem=problems())
def test_norm_gradient_is_the_derivative_of_S_and_of_Q_by_every_weight(engine, problem):
    net, u, t, starts, horizon = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    truth = Autograd(net, u, t, starts)
    for of, value in (("S", truth.S(horizon)), ("Q", truth.Q(horizon))):
        expected = truth.gradient_of(value)
        np.testing.assert_allclose(
            gs.norm_gradient(flow, horizon, of).flat,
            expected,
            rtol=1e-7,
            atol=1e-9 * np.abs(expected).max() + 1e-14,
        )


@every_engine
@given(problem=problems(), window=st.sampled_from([0.01, 0.5, 0.7, 1.0]))
def test_the_slow_factor_and_its_derivative_are_those_of_autograd(engine, problem, window):
    net, u, t, starts, horizon = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    truth = Autograd(net, u, t, starts)
    value = truth.slow_Q(horizon, max(1, int(window * (horizon + 1))))
    assert gs.slow_factor(flow, horizon, window) == pytest.approx(value.item(), rel=1e-9, abs=1e-9)
    expected = truth.gradient_of(value)
    np.testing.assert_allclose(
        gs.slow_gradient(flow, horizon, window).flat,
        expected,
        rtol=1e-6,
        atol=1e-8 * np.abs(expected).max() + 1e-14,
    )


@every_engine
def test_sequences_that_begin_after_the_window_do_not_count_in_the_slow_factor(engine):
    net, u, t, _ = random_problem(3, 12, 4, 2, 7, 3, "softmax")
    late = np.array([0, 9, 0, 9])
    flow = gs.backpropagate(net, u, t, engine, starts=late)
    others = gs.backpropagate(net, u[:, ::2], t[::2], engine)
    assert gs.slow_factor(flow, window=0.5) == pytest.approx(gs.slow_factor(others, window=0.5))
    np.testing.assert_allclose(
        gs.slow_gradient(flow, window=0.5).flat, gs.slow_gradient(others, window=0.5).flat
    )
    none = gs.backpropagate(net, u, t, engine, starts=np.full(4, 9))
    assert gs.slow_factor(none, window=0.5) == math.inf
    assert not gs.slow_gradient(none, window=0.5).flat.any()


@every_engine
def test_a_delta_that_turns_averages_away_and_one_that_stays_does_not(engine):
    """Two linear units: a rotation by 60° a step, and the identity, with equally large deltas."""
    half, root = 0.5, math.sqrt(0.75)
    turning = np.array([[half, -root], [root, half]])
    factors = []
    for w_rec in (turning, np.eye(2)):
        net = gs.SRN(np.full((1, 2), 1e-4), w_rec, np.zeros(2), np.eye(2), np.zeros(2), "linear")
        flow = gs.backpropagate(net, np.zeros((40, 3, 1)), np.ones((3, 2)), engine)
        assert gs.q_factor(flow) == pytest.approx(0, abs=1e-6)
        factors.append(gs.slow_factor(flow))
    assert factors[0] > 2
    assert factors[1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("window", [0, -0.1, 1.1, math.nan])
def test_a_window_outside_the_horizon_is_refused(window):
    net, u, t, _ = random_problem(3, 12, 4, 2, 7, 3, "softmax")
    flow = gs.backpropagate(net, u, t)
    for call in (gs.slow_factor, gs.slow_gradient):
        with pytest.raises(gs.InvalidArgument, match="window is"):
            call(flow, window=window)
    with pytest.raises(gs.InvalidArgument, match="window is"):
        gs.Sieve(policy="hold", window=window)


@every_engine
@every_estimator
@given(problem=problems())
def test_a_contribution_is_the_dS_of_that_examples_own_update(engine, estimator, problem):
    net, u, t, starts, horizon = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    contributions = gs.example_contributions(flow, 0.01, horizon, estimator)
    size = np.abs(contributions).max() + 1e-300
    whole = gs.norm_change(flow, net.like(-0.01 * flow.gradient.flat), horizon, estimator)
    assert contributions.sum() == pytest.approx(whole.dS, rel=1e-7, abs=1e-8 * size)
    for example, contribution in enumerate(contributions):
        alone = gs.backpropagate(
            net,
            u[:, example : example + 1],
            t[example : example + 1],
            engine="reference",
            starts=None if starts is None else starts[example : example + 1],
        )
        own = gs.norm_change(flow, net.like(-0.01 * alone.gradient.flat), horizon, estimator)
        assert contribution == pytest.approx(own.dS, rel=1e-7, abs=1e-8 * size)


@every_engine
def test_with_a_target_at_every_step_the_far_gradient_is_that_of_the_last_step(engine):
    net, u, t, starts = random_problem(
        2, 9, 4, 2, 7, 3, "softmax", per_step=True, gain=1.5
    )  # fmt: skip
    every = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    last = gs.backpropagate(net, u, t[-1], engine=engine, starts=starts)
    update = random_update(net, 0)
    assert gs.norm_change(every, update) == gs.norm_change(last, update)
    assert gs.q_factor(every) == gs.q_factor(last)
    assert gs.slow_factor(every) == gs.slow_factor(last)
    assert np.array_equal(gs.slow_gradient(every).flat, gs.slow_gradient(last).flat)
    assert np.array_equal(gs.norm_gradient(every).flat, gs.norm_gradient(last).flat)
    contributions = gs.example_contributions(every, 0.1)
    whole = gs.norm_change(every, net.like(-0.1 * every.gradient.flat))
    assert contributions.sum() == pytest.approx(whole.dS, rel=1e-9)


@every_engine
@every_estimator
def test_the_prediction_is_linear_in_the_update(engine, estimator):
    net, u, t, _ = random_problem(2, 9, 4, 2, 7, 3, "softmax")
    flow = gs.backpropagate(net, u, t, engine=engine)
    one, two = random_update(net, 1), random_update(net, 2)
    both = net.like(3 * one.flat - 0.5 * two.flat)
    first, second, third = (
        gs.norm_change(flow, update, estimator=estimator) for update in (one, two, both)
    )
    assert third.dS == pytest.approx(3 * first.dS - 0.5 * second.dS, rel=1e-9)
    assert third.dQ == pytest.approx(3 * first.dQ - 0.5 * second.dQ, rel=1e-9)


@every_engine
def test_frozen_looks_at_w_rec_only(engine):
    net, u, t, _ = random_problem(2, 9, 4, 2, 7, 3, "softmax")
    flow = gs.backpropagate(net, u, t, engine=engine)
    update = random_update(net, 1)
    for name in ("w_in", "b", "w_out", "b_out"):
        getattr(update, name)[:] = 0
    assert gs.norm_change(flow, update, estimator="frozen") == gs.norm_change(
        flow, random_update(net, 1), estimator="frozen"
    )
    update.w_rec[:] = 0
    assert gs.norm_change(flow, update, estimator="frozen").dS == 0


@every_engine
def test_a_far_gradient_of_exactly_zero_is_infinitely_vanished(engine):
    net, u, t, _ = random_problem(2, 9, 4, 2, 7, 3, "softmax", gain=0.0)
    flow = gs.backpropagate(net, u, t, engine=engine)
    change = gs.norm_change(flow, random_update(net, 1))
    assert change.S == 0
    assert math.isinf(change.Q)
    assert math.isnan(change.relative)


@every_engine
@pytest.mark.parametrize("horizon", [0, -1, 9, 100])
def test_a_horizon_out_of_range_is_refused_with_its_range(engine, horizon):
    net, u, t, _ = random_problem(2, 9, 4, 2, 7, 3, "softmax")
    flow = gs.backpropagate(net, u, t, engine=engine)
    for call in (
        lambda: gs.norm_change(flow, net, horizon),
        lambda: gs.q_factor(flow, horizon),
        lambda: gs.norm_gradient(flow, horizon),
        lambda: gs.example_contributions(flow, 1.0, horizon),
    ):
        with pytest.raises(gs.InvalidArgument, match=r"1 … 8"):
            call()


def test_one_step_has_no_far_gradient():
    net, u, t, _ = random_problem(2, 1, 4, 2, 7, 3, "softmax")
    with pytest.raises(gs.InvalidArgument, match="2 steps"):
        gs.q_factor(gs.backpropagate(net, u, t))


def test_unknown_names_and_updates_that_do_not_fit_are_refused():
    net, u, t, _ = random_problem(2, 9, 4, 2, 7, 3, "softmax")
    flow = gs.backpropagate(net, u, t, engine="reference")
    with pytest.raises(gs.InvalidArgument, match="'full', 'frozen' or 'measured'"):
        gs.norm_change(flow, net, estimator="exact")
    with pytest.raises(gs.InvalidArgument, match="'full', 'frozen' or 'measured'"):
        gs.example_contributions(flow, 1.0, estimator="exact")
    with pytest.raises(gs.InvalidArgument, match="'Q' or 'S'"):
        gs.norm_gradient(flow, of="dS")
    with pytest.raises(gs.InvalidArgument, match="must fit the network"):
        gs.norm_change(flow, gs.SRN.random(3, 7, 3))
    same_size = gs.SRN.random(3, 7, 2)
    assert same_size.flat.size != net.flat.size or same_size.w_in.shape != net.w_in.shape
    with pytest.raises(gs.InvalidArgument, match="must fit the network"):
        gs.norm_change(flow, same_size)
