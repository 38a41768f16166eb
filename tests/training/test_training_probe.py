"""Looks inside a network: what they say is what can be measured from outside."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.training import Stacked
from gradsieve.training.probe import lags, log10_norms, probe
from gradsieve.training.step import Stepper
from oracles import Autograd, every_engine, random_problem


@given(length=st.integers(1, 2000), most=st.integers(2, 60))
def test_lags_run_from_zero_to_the_first_step_without_repeats(length, most):
    chosen = lags(length, most)
    assert chosen[0] == 0
    assert chosen[-1] == length - 1
    assert len(chosen) <= most
    assert (np.diff(chosen) > 0).all()


@every_engine
def test_a_look_has_the_norms_of_autograd_and_the_activations(engine):
    net, u, t, starts = random_problem(3, 12, 6, 2, 8, 3, "softmax", gain=1.5)
    stepper = Stepper(net.copy(), gs.Recipe(), engine)
    seen = probe(stepper, Stacked(u.transpose(1, 0, 2), t, starts))
    truth = Autograd(net, u, t)
    norms = truth.deltas.detach().norm(dim=2).mean(dim=1).log10().numpy()
    assert seen.lags == list(range(12))
    np.testing.assert_allclose(seen.log10_norm, norms[::-1], rtol=1e-9)
    size = np.abs(gs.backpropagate(net, u, t, "reference").states[1:])
    assert seen.activation_mean == pytest.approx(size.mean())
    assert seen.activation_median == pytest.approx(np.median(size))
    assert seen.saturated == pytest.approx((size > 0.9).mean())
    assert seen.predicted is None
    assert seen.measured is None


@every_engine
@pytest.mark.parametrize("per_step", [False, True])
def test_prediction_and_measurement_agree_for_a_small_update(engine, per_step):
    net, u, t, starts = random_problem(3, 12, 6, 2, 8, 3, "softmax", per_step=per_step)
    stepper = Stepper(net.copy(), gs.Recipe().replaced(learning_rate=1e-5), engine)
    stepper.step(u, t, starts)
    sequences = Stacked(u.transpose(1, 0, 2), t.T if per_step else t, starts)
    seen = probe(stepper, sequences)
    last = t[-1] if per_step else t
    S = [gs.backpropagate(which, u, last, "reference").deltas[0] for which in (net, stepper.net)]
    true = math.log(np.linalg.norm(S[1]) / np.linalg.norm(S[0]))
    assert seen.measured == pytest.approx(true, rel=1e-4)
    assert seen.predicted == pytest.approx(true, rel=1e-2)


def test_a_gradient_of_exactly_zero_is_null_and_not_an_infinity():
    net, u, t, starts = random_problem(3, 5, 6, 2, 8, 3, "softmax", gain=0.0)
    flow = gs.backpropagate(net, u, t)
    assert log10_norms(flow)[0] == -math.inf
    seen = probe(Stepper(net, gs.Recipe()), Stacked(u.transpose(1, 0, 2), t, starts))
    assert seen.log10_norm[-1] is None
