"""The compiled kernel against the reference: any sizes, both precisions, every vector set."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsieve.kernel import NativeFlow, available_isas, predict
from gradsieve.reference import predict as reference_predict
from kernel_problems import Problem, problems, problems_with_targets_at_every_step, sizes

every_isa = pytest.mark.parametrize("isa", available_isas())


def native(problem):
    return NativeFlow(problem.net, problem.u, problem.t, problem.starts, isa=problem.isa)


def check_flow(problem):
    flow = native(problem)
    problem.check("loss", flow.loss, lambda reference: reference.loss)
    for name in ("states", "slopes", "deltas", "outputs", "errors"):
        problem.check(name, getattr(flow, name), lambda reference: getattr(reference, name))  # noqa: B023
    problem.check("gradient", flow.gradient.flat, lambda reference: reference.gradient.flat)
    direction = problem.direction(1, 1.0)
    problem.check(
        "example products",
        flow.example_products(direction),
        lambda reference: reference.example_products(direction),
    )
    np.testing.assert_allclose(
        flow.example_products(direction).sum(),
        np.dot(flow.gradient.flat.astype(float), direction.flat.astype(float)),
        atol=1e-4 * np.linalg.norm(flow.gradient.flat) * np.linalg.norm(direction.flat),
    )


@settings(max_examples=150)
@given(problems)
def test_a_flow_is_that_of_the_reference(problem):
    check_flow(problem)


@given(problems_with_targets_at_every_step)
def test_a_flow_with_targets_at_every_step_is_that_of_the_reference(problem):
    check_flow(problem)


def in_true_units(norms):
    near, far = np.ldexp(1.0, norms.near_exponent), np.ldexp(1.0, norms.far_exponent)
    return np.array([norms.near_norm * near, norms.far_norm * far, norms.far_square * far * far])


@settings(max_examples=150)
@given(problems, st.sampled_from(["full", "frozen"]), st.sampled_from([1e-3, 0.1]))
def test_norms_and_their_change_agree_at_every_horizon(problem, estimator, size):
    flow, update = native(problem), problem.direction(2, size)
    for horizon in range(1, problem.u.shape[0]):

        def of_reference(reference, horizon=horizon):
            return reference.norms(update, horizon, estimator)

        norms, expected = flow.norms(update, horizon, estimator), of_reference(problem.reference)
        without = flow.norms(None, horizon, estimator)
        np.testing.assert_array_equal(in_true_units(without), in_true_units(norms))
        assert without.near_slope == without.far_slope == without.far_product == 0
        for index, name in enumerate(("near norm", "far norm", "far square")):
            problem.check(
                name,
                in_true_units(norms)[index],
                lambda flow, index=index: in_true_units(of_reference(flow))[index],
            )
        if expected.far_square == 0:
            continue
        for index, name in enumerate(("near", "far")):
            problem.check(
                f"{name} norm after the update",
                norms_after(norms)[index],
                lambda flow, index=index: norms_after(of_reference(flow))[index],
            )
        relative = relative_change(expected)
        if abs(relative) > 1e-4 and np.sign(norms.far_product) != np.sign(relative):
            movement = problem.movement(lambda flow: relative_change(of_reference(flow)))
            assert 20 * movement > abs(relative), "the sign of dS"


def norms_after(norms):
    """Near and far, as the update is predicted to leave them."""
    return np.ldexp(
        [norms.near_norm + norms.near_slope, norms.far_norm + norms.far_slope],
        [norms.near_exponent, norms.far_exponent],
    )


def relative_change(norms):
    """dS / (2S)"""
    return norms.far_product / norms.far_square


@settings(max_examples=150)
@given(problems, st.sampled_from(["S", "Q"]), st.sampled_from(["full", "frozen"]))
def test_the_derivative_of_S_and_Q_agrees_at_every_horizon(problem, of, estimator):
    flow, steps = native(problem), problem.u.shape[0]
    for horizon in range(1, steps):
        units = 4.0 ** int(flow.exponents[steps - horizon - 1]) if of == "S" else 1.0
        if not problem.reference.scaled_deltas[steps - horizon - 1].any():
            continue  # every sequence begins later: there is nothing to differentiate

        def of_reference(reference, horizon=horizon):
            units = 4.0 ** int(reference.exponents[steps - horizon - 1]) if of == "S" else 1.0
            return reference.norm_gradient(horizon, of, estimator).flat * units

        slope = flow.norm_gradient(horizon, of, estimator).flat.astype(float) * units
        problem.check(f"derivative of {of}", slope, of_reference)


@settings(max_examples=150)
@given(problems, st.sampled_from([0.01, 0.3, 0.7, 1.0]))
def test_the_slow_factor_and_its_derivative_agree_at_every_horizon(problem, window):
    flow, steps = native(problem), problem.u.shape[0]
    for horizon in range(1, steps):
        width = max(1, int(window * (horizon + 1)))
        first = steps - horizon - 1
        if not problem.reference.scaled_deltas[first : first + width].any():
            assert not math.isfinite(flow.slow_factor(horizon, width))
            continue
        problem.check(
            "slow Q",
            flow.slow_factor(horizon, width),
            lambda reference, h=horizon, w=width: reference.slow_factor(h, w),
        )
        problem.check(
            "derivative of the slow Q",
            flow.slow_gradient(horizon, width).flat,
            lambda reference, h=horizon, w=width: reference.slow_gradient(h, w).flat,
        )


@settings(max_examples=150)
@given(problems)
def test_deltas_stay_within_reach_of_a_float_and_padding_stays_out_of_them(problem):
    flow = native(problem)
    largest = np.abs(flow.scaled_deltas).max(axis=(1, 2))
    assert ((largest == 0) | ((largest > 2.0**-26) & (largest <= 2.0**24))).all()


@given(
    sizes,
    st.integers(1, 200),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["softmax", "linear"]),
    st.sampled_from(available_isas()),
)
def test_predictions_agree_for_any_number_of_sequences(
    sizes, sequences, per_step, unequal, output, isa
):
    steps, _, *others = sizes
    problem = Problem((steps, sequences, *others), output, isa=isa, unequal=unequal)
    outputs = predict(problem.net, problem.u, problem.starts, per_step, isa)
    assert outputs.dtype == problem.dtype
    expected = reference_predict(problem.net, problem.u, problem.starts, per_step)
    np.testing.assert_allclose(outputs, expected, atol=1e-5 * np.abs(expected).max(), rtol=0)


@every_isa
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_network_of_the_papers_size_agrees(isa, dtype):
    problem = Problem((100, 10, 6, 100, 4), dtype=dtype, isa=isa)
    check_flow(problem)
    update = problem.direction(3, 1e-4)
    flow = native(problem)
    for estimator in ("full", "frozen"):
        norms = flow.norms(update, 99, estimator)
        problem.check(
            "dS/(2S)",
            norms.far_product / norms.far_square,
            lambda reference, estimator=estimator: (
                lambda expected: expected.far_product / expected.far_square
            )(reference.norms(update, 99, estimator)),
        )
        problem.check(
            "derivative of Q",
            flow.norm_gradient(99, "Q", estimator).flat,
            lambda reference, estimator=estimator: reference.norm_gradient(99, "Q", estimator).flat,
        )


@every_isa
def test_every_vector_set_splits_a_large_product_the_same(isa):
    problem = Problem((3, 300, 30, 130, 20), isa=isa)
    check_flow(problem)
