"""Where floats end: deltas below 1e-200 and above 1e200, against decimals of 50 digits.

A thousand steps through saturated units take delta to 10 to the minus thousands, which no float
holds. What is decided from it (Q, the sign of dS, dS/(2S), dQ) must be right all the same.
"""

import math

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.reference.flow import forward
from oracles import Autograd, decimal_change, every_engine, random_problem, random_update

T = 1000


def saturated(output, bias, seed):
    """A net whose units sit at about tanh(±bias), so that delta falls by 4·exp(-2 bias) a step."""
    net, u, t, _ = random_problem(seed, T, 2, 1, 3, 2, output)
    net.b[:] = np.sign(net.b) * bias
    return net, 0.3 * u, t


CASES = [("softmax", 1.5, 0), ("linear", 3.0, 1), ("softmax", 21.0, 2)]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def vanished(request):
    net, u, t = saturated(*request.param)
    update = random_update(net, request.param[2], 1e-3)
    return net, u, t, update, decimal_change(net, u, t, update, T - 1)


@every_engine
def test_Q_and_the_sign_of_dS_are_right_where_delta_is_below_1e_200(engine, vanished):
    net, u, t, update, (S, Q, relative, sign, dQ) = vanished
    assert S.sqrt() < 1e-200
    flow = gs.backpropagate(net, u, t, engine=engine)
    change = gs.norm_change(flow, update)
    np.testing.assert_allclose(change.Q, Q, rtol=1e-9)
    assert gs.q_factor(flow) == change.Q
    assert math.copysign(1, change.dS) == sign
    assert change.dS != 0
    assert change.relative == pytest.approx(relative, rel=1e-6)
    assert change.dQ == pytest.approx(dQ, rel=1e-6)


@every_engine
def test_the_slope_of_Q_is_right_where_delta_is_below_1e_200(engine, vanished):
    net, u, t, update, (*_, dQ) = vanished
    flow = gs.backpropagate(net, u, t, engine=engine)
    slope = gs.norm_gradient(flow)
    assert np.isfinite(slope.flat).all()
    assert slope.flat @ update.flat == pytest.approx(dQ, rel=1e-6)


@every_engine
@pytest.mark.parametrize("estimator", ["full", "frozen"])
def test_contributions_keep_their_sign_where_delta_is_below_1e_200(engine, estimator, vanished):
    net, u, t, *_ = vanished
    flow = gs.backpropagate(net, u, t, engine=engine)
    contributions = gs.example_contributions(flow, 1.0, estimator=estimator)
    for example, contribution in enumerate(contributions):
        pick = slice(example, example + 1)
        alone = gs.backpropagate(net, u[:, pick], t[pick], engine="reference").gradient
        own = gs.norm_change(flow, net.like(-alone.flat), estimator=estimator)
        assert np.sign(contribution) == np.sign(own.dS) != 0


def test_float32_weights_still_know_Q_and_the_sign(vanished):
    net, u, t, update, (_, Q, relative, sign, _) = vanished
    flow = gs.backpropagate(net.astype(np.float32), u, t, engine="native")
    change = gs.norm_change(flow, net.like(update.flat.astype(np.float32)))
    np.testing.assert_allclose(change.Q, Q, rtol=1e-4)
    assert math.copysign(1, change.dS) == sign
    assert change.relative == pytest.approx(relative, rel=1e-2)


@every_engine
def test_an_exploded_far_gradient_is_finite_in_Q_and_infinite_in_S(engine):
    """Unsaturated units and a large w_rec: delta grows to 10 to the hundreds on its way back."""
    net, u, t, _ = random_problem(3, 800, 2, 1, 3, 2, "linear")
    net.b[:] = 0
    net.w_in[:] = 0
    net.w_rec[:] = 3 * np.eye(3)  # states stay at zero, so delta triples with each step back
    flow = gs.backpropagate(net, u, t, engine=engine)
    change = gs.norm_change(flow, net.like(1e-3 * net.flat))
    np.testing.assert_allclose(change.Q, -799 * math.log10(3), rtol=1e-12)
    assert math.isinf(change.S)
    assert change.dS == math.inf
    assert change.relative == pytest.approx(799e-3 + 1e-3, rel=0.01)
    assert change.dQ < 0


def test_slopes_are_exact_where_states_round_to_one():
    net = gs.SRN(np.ones((1, 1)), np.zeros((1, 1)), [0.0], np.ones((1, 1)), [0.0], "linear")
    a = np.array([0.0, 1e-9, 0.5, 5.0, 19.0, 40.0, 300.0])
    states, slopes = forward(net, a[:, None, None], None)
    assert states[-1, 0, 0] == 1.0
    true = [float(1 / np.cosh(np.longdouble(x)) ** 2) for x in a]
    np.testing.assert_allclose(slopes[:, 0, 0], true, rtol=1e-14)


@every_engine
def test_weights_that_overflow_are_reported_as_not_finite_and_never_raise(engine):
    net, u, t, _ = random_problem(3, 30, 2, 1, 3, 2, "linear")
    net.w_out[:] = 1e200
    net.w_rec[:] = 1e200
    flow = gs.backpropagate(net, u, t, engine=engine)
    assert not math.isfinite(flow.loss)
    change = gs.norm_change(flow, net.like(net.flat * 1e100))
    assert math.isnan(change.Q) or not math.isfinite(change.Q)
    assert not gs.Sieve(q_range=(-1, 1)).judge(change).keep


@pytest.mark.parametrize("output", ["softmax", "linear"])
@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize(("hidden", "scale"), [(1, 1000.0), (1, 100.0), (3, 300.0), (5, 30.0)])
def test_saturated_units_with_a_target_at_every_step_have_a_finite_gradient(
    hidden, scale, unequal, output
):
    """A later delta of 10 to the minus hundreds must not decide the units of a step's own error."""
    for seed in range(12):
        net, u, t, starts = random_problem(
            seed, 60, 2, 2, hidden, 2, output, per_step=True, unequal=unequal
        )
        u *= scale
        reference, native = (
            gs.backpropagate(net, u, t, engine=engine, starts=starts).gradient.flat
            for engine in ("reference", "native")
        )
        assert np.isfinite(reference).all()
        np.testing.assert_allclose(native, reference, rtol=1e-9, atol=1e-12)
        truth = Autograd(net, u, t, starts)
        np.testing.assert_allclose(
            reference, truth.gradient_of(truth.loss), rtol=1e-6, atol=1e-9 * scale
        )
