"""Where floats end: saturated units, vanished and exploded deltas, NaN, and the caller's mode."""

import math
import threading

import numpy as np
import pytest

from gradsieve.kernel import NativeFlow, available_isas
from gradsieve.network import SRN
from gradsieve.reference import ReferenceFlow
from oracles import random_problem

every_isa = pytest.mark.parametrize("isa", available_isas())
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def one_unit(activations, isa):
    """States and slopes of one unit whose pre-activation is each of the numbers given."""
    one = np.ones((1, 1), dtype=activations.dtype)
    net = SRN(w_in=one, w_rec=0 * one, b=[0], w_out=one, b_out=[0], output="linear")
    net = net.astype(activations.dtype)
    targets = np.zeros((activations.size, 1), dtype=activations.dtype)
    flow = NativeFlow(net, activations.reshape(1, -1, 1), targets, None, isa=isa)
    return flow.states[1, :, 0], flow.slopes[0, :, 0]


@every_isa
@every_dtype
def test_tanh_and_its_slope_are_right_to_a_few_ulp(isa, dtype):
    steepest = 39.0 if dtype == np.float32 else 350.0
    a = np.concatenate(
        [np.linspace(-steepest, steepest, 20001), np.logspace(-30, 0, 5000), [0.0]]
    ).astype(dtype)
    value, slope = one_unit(a, isa)
    exact = a.astype(np.longdouble)
    decay = np.exp(-2 * np.abs(exact))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(value, np.tanh(exact).astype(float), rtol=4 * eps, atol=0)
    np.testing.assert_allclose(slope, (4 * decay / (1 + decay) ** 2).astype(float), rtol=12 * eps)
    np.testing.assert_array_equal(np.signbit(value), np.signbit(a))


@every_isa
@every_dtype
def test_a_unit_beyond_all_saturation_is_one_and_has_no_slope(isa, dtype):
    value, slope = one_unit(np.array([400, -400, 1e30, -1e30, np.inf, -np.inf], dtype=dtype), isa)
    np.testing.assert_array_equal(value, [1, -1] * 3)
    np.testing.assert_array_equal(slope, np.zeros(6))


@every_isa
@every_dtype
def test_nan_reaches_the_loss_and_the_gradient(isa, dtype):
    net, u, t, _ = random_problem(0, 4, 3, 2, 20, 3, "softmax")
    net = net.astype(dtype)
    net.w_rec[7, 19] = np.nan
    flow = NativeFlow(net, u.astype(dtype), t, None, isa=isa)
    assert math.isnan(flow.loss)
    assert np.isnan(flow.gradient.flat).any()


@every_isa
@every_dtype
def test_a_vanished_delta_of_a_thousand_steps_keeps_its_digits(isa, dtype):
    net, u, t, _ = random_problem(3, 1000, 3, 1, 20, 2, "softmax", gain=0.5)
    net.b[:] = np.sign(net.b) * 1.5
    net, u = net.astype(dtype), (0.3 * u).astype(dtype)
    flow, reference = NativeFlow(net, u, t, None, isa=isa), ReferenceFlow(net, u, t, None)
    assert reference.exponents[0] < -700  # 2**-700 is below 1e-200
    shift = (flow.exponents - reference.exponents)[:, None, None]
    scaled = np.ldexp(flow.scaled_deltas.astype(float), shift)
    size = np.linalg.norm(reference.scaled_deltas, axis=(1, 2))
    error = np.linalg.norm(scaled - reference.scaled_deltas, axis=(1, 2)) / size
    assert error.max() < (1e-3 if dtype == np.float32 else 1e-11)
    update = net.like(1e-3 * np.random.default_rng(0).normal(size=net.flat.size).astype(dtype))
    for estimator in ("full", "frozen"):
        for horizon in (1, 10, 500, 999):
            norms = flow.norms(update, horizon, estimator)
            expected = reference.norms(update, horizon, estimator)
            assert norms.far_product / norms.far_square == pytest.approx(
                expected.far_product / expected.far_square,
                rel=1e-3 if dtype == np.float32 else 1e-9,
            )
            slope = flow.norm_gradient(horizon, "Q", estimator).flat.astype(float)
            true_slope = reference.norm_gradient(horizon, "Q", estimator).flat
            assert np.isfinite(slope).all()
            assert np.linalg.norm(slope - true_slope) < 1e-3 * np.linalg.norm(true_slope)


@every_isa
def test_an_error_at_an_early_step_is_added_to_deltas_that_have_vanished(isa):
    """In the units of what came back from later steps it would overflow a float."""
    net, u, t, _ = random_problem(4, 400, 2, 1, 12, 2, "linear", per_step=True)
    net.b[:] = np.sign(net.b) * 3
    net, u = net.astype(np.float32), (0.3 * u).astype(np.float32)
    outputs = NativeFlow(net, u, t.astype(np.float32), None, isa=isa).outputs
    targets = outputs.copy()  # errors of exactly zero, but for the last step and the first
    targets[-1] += 1
    targets[0] += 1
    flow = NativeFlow(net, u, targets, None, isa=isa)
    assert flow.exponents[1] < -200
    assert abs(flow.exponents[0]) < 30
    reference = ReferenceFlow(net, u, targets, None)
    np.testing.assert_allclose(flow.gradient.b, reference.gradient.b, rtol=1e-4)
    np.testing.assert_allclose(flow.deltas[0], reference.deltas[0], rtol=1e-4)


@every_isa
def test_an_exploded_delta_is_reported_and_its_gradient_is_not_finite(isa):
    """At rest (z = 0, D = 1) and with w_rec three times a rotation, delta grows by 3 a step."""
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(24, 24)))
    rng = np.random.default_rng(1)
    net = SRN(
        w_in=rng.normal(size=(2, 24)),
        w_rec=3 * rotation,
        b=np.zeros(24),
        w_out=rng.normal(size=(24, 2)),
        b_out=np.zeros(2),
        output="linear",
    ).astype(np.float32)
    flow = NativeFlow(
        net, np.zeros((300, 4, 2), np.float32), np.ones((4, 2), np.float32), None, isa=isa
    )
    assert math.isfinite(flow.loss)
    assert np.isfinite(flow.scaled_deltas).all()
    growth = np.linalg.norm(flow.deltas, axis=(1, 2))
    np.testing.assert_allclose(growth[:-1] / growth[1:], 3, rtol=1e-5)
    assert not np.isfinite(flow.gradient.b).all()


@every_isa
def test_the_callers_floating_point_mode_comes_back(isa):
    """The kernel flushes subnormals; NumPy beside it must not."""
    tiny = np.full(16, 1e-40, dtype=np.float32)
    net, u, t, _ = random_problem(0, 3, 2, 2, 5, 3, "softmax")
    net, u = net.astype(np.float32), u.astype(np.float32)
    assert (tiny * np.float32(0.5) > 0).all()
    flow = NativeFlow(net, u, t, None, isa=isa)
    flow.norms(flow.gradient, 2, "full")
    flow.norm_gradient(2, "Q", "full")
    flow.example_products(flow.gradient)
    with pytest.raises(ValueError, match="horizon"):
        flow.norms(None, 3, "full")
    assert (tiny * np.float32(0.5) > 0).all()


@every_isa
def test_networks_in_flight_at_once_give_the_bits_they_give_alone(isa):
    problems = [random_problem(seed, 60, 10, 3, 40, 4, "softmax") for seed in range(2)]
    cases = [(net.astype(np.float32), u.astype(np.float32), t) for net, u, t, _ in problems]

    def answers(net, u, t, rounds):
        results, flow = set(), None
        for _ in range(rounds):
            flow = NativeFlow(net, u, t, None, flow, isa=isa)
            norms = flow.norms(flow.gradient, 59, "full")
            results.add((flow.loss, flow.gradient.flat.tobytes(), norms))
        return results

    alone = [answers(*case, rounds=1) for case in cases]
    together = [None, None]

    def work(index):
        together[index] = answers(*cases[index], rounds=50)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone
