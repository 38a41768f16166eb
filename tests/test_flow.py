"""Forward and backward: against autograd, finite differences, and one sequence at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from oracles import Autograd, every_engine, random_problem

problems = st.builds(
    random_problem,
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 12),
    batch=st.integers(1, 11),
    inputs=st.integers(1, 4),
    hidden=st.sampled_from([1, 2, 5, 8, 17, 33]),
    outputs=st.integers(1, 5),
    output=st.sampled_from(["softmax", "linear"]),
    per_step=st.booleans(),
    gain=st.sampled_from([0.3, 1.0, 2.0]),
    unequal=st.booleans(),
)


@every_engine
@given(problem=problems)
def test_loss_deltas_and_gradient_are_those_of_autograd(engine, problem):
    net, u, t, starts = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    truth = Autograd(net, u, t, starts)
    assert flow.loss == pytest.approx(truth.loss.item(), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(flow.deltas, truth.deltas.detach(), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(
        flow.gradient.flat, truth.gradient_of(truth.loss), rtol=1e-8, atol=1e-9
    )


@every_engine
@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("output", ["softmax", "linear"])
def test_the_gradient_is_the_central_difference_of_the_loss(engine, output, per_step):
    net, u, t, starts = random_problem(
        5, steps=9, batch=4, inputs=2, hidden=6, outputs=3, output=output, per_step=per_step,
        unequal=True,
    )  # fmt: skip
    gradient = gs.backpropagate(net, u, t, engine=engine, starts=starts).gradient.flat
    for index in range(0, net.flat.size, 3):
        losses = []
        for step in (1e-5, -1e-5):
            moved = net.copy()
            moved.flat[index] += step
            losses.append(gs.backpropagate(moved, u, t, engine=engine, starts=starts).loss)
        assert gradient[index] == pytest.approx((losses[0] - losses[1]) / 2e-5, rel=1e-5, abs=1e-7)


@every_engine
@given(problem=problems)
def test_a_minibatch_is_its_sequences_one_at_a_time_without_what_precedes_them(engine, problem):
    net, u, t, starts = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    per_step = flow.per_step
    loss, gradient = 0.0, np.zeros_like(net.flat)
    for example in range(u.shape[1]):
        first = 0 if starts is None else starts[example]
        alone = gs.backpropagate(
            net,
            u[first:, example : example + 1],
            t[first:, example : example + 1] if per_step else t[example : example + 1],
            engine=engine,
        )
        loss += alone.loss
        gradient += alone.gradient.flat
        np.testing.assert_allclose(
            flow.deltas[first:, example], alone.deltas[:, 0], rtol=1e-9, atol=1e-12
        )
        assert not flow.deltas[:first, example].any()
        assert not flow.states[: first + 1, example].any()
    assert flow.loss == pytest.approx(loss, rel=1e-10)
    np.testing.assert_allclose(flow.gradient.flat, gradient, rtol=1e-9, atol=1e-10)


@every_engine
@given(problem=problems)
def test_states_and_slopes_obey_equation_1_and_predict_gives_the_same_outputs(engine, problem):
    net, u, t, starts = problem
    flow = gs.backpropagate(net, u, t, engine=engine, starts=starts)
    active = np.ones(u.shape[:2], bool)
    if starts is not None:
        active = np.arange(1, len(u) + 1)[:, None] > starts
    z = np.tanh(u @ net.w_in + flow.states[:-1] @ net.w_rec + net.b) * active[..., None]
    np.testing.assert_allclose(flow.states[1:], z, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(flow.slopes, (1 - z**2) * active[..., None], rtol=1e-8, atol=1e-12)
    outputs = gs.predict(net, u, engine=engine, starts=starts, per_step=flow.per_step)
    np.testing.assert_allclose(outputs, flow.outputs, rtol=1e-12, atol=1e-14)
    if net.output == "softmax":
        np.testing.assert_allclose(outputs.sum(axis=-1), 1)
    else:
        read = flow.states[1:] if flow.per_step else flow.states[-1]
        np.testing.assert_allclose(outputs, read @ net.w_out + net.b_out, rtol=1e-9, atol=1e-12)


@every_engine
def test_a_flow_keeps_its_own_weights_and_inputs_stay_as_they_were(engine):
    net, u, t, _ = random_problem(3, 6, 4, 2, 5, 3, "softmax")
    before = u.copy()
    flow = gs.backpropagate(net, u, t, engine=engine)
    update = flow.gradient.like(-0.01 * flow.gradient.flat)
    change = gs.norm_change(flow, update)
    net.flat[:] = 0
    assert gs.norm_change(flow, update) == change
    assert np.array_equal(u, before)


@every_engine
def test_reusing_the_memory_of_an_older_flow_changes_no_bit(engine):
    net, u, t, _ = random_problem(3, 6, 4, 2, 5, 3, "softmax")
    other = random_problem(4, 6, 4, 2, 5, 3, "softmax")
    fresh = gs.backpropagate(net, u, t, engine=engine)
    older = gs.backpropagate(*other[:3], engine=engine)
    again = gs.backpropagate(net, u, t, engine=engine, reuse=older)
    assert again.loss == fresh.loss
    assert np.array_equal(again.gradient.flat, fresh.gradient.flat)
    assert np.array_equal(again.deltas, fresh.deltas)
    smaller = gs.backpropagate(net, u[:, :2], t[:2], engine=engine, reuse=again)
    assert smaller.loss == gs.backpropagate(net, u[:, :2], t[:2], engine=engine).loss


@every_engine
def test_a_float32_network_gives_the_same_to_float32_precision(engine):
    net, u, t, _ = random_problem(6, 20, 10, 3, 40, 4, "softmax")
    exact = gs.backpropagate(net, u, t, engine="reference")
    single = gs.backpropagate(net.astype(np.float32), u, t, engine=engine)
    assert single.loss == pytest.approx(exact.loss, rel=1e-4)
    np.testing.assert_allclose(
        single.gradient.flat, exact.gradient.flat, rtol=1e-3, atol=1e-4 * np.abs(exact.deltas).max()
    )


NET = gs.SRN.random(2, 3, 2, output="softmax")
LINEAR = gs.SRN.random(2, 3, 2, output="linear")
U = np.ones((4, 3, 2))
CLASSES = np.zeros(3, int)
VALUES = np.zeros((3, 2))


@pytest.mark.parametrize(
    ("net", "u", "t", "starts", "names"),
    [
        (NET, np.ones((4, 3)), CLASSES, None, r"u has shape \(4, 3\)"),
        (NET, np.ones((4, 3, 1)), CLASSES, None, r"u has shape \(4, 3, 1\)"),
        (NET, np.ones((0, 3, 2)), CLASSES, None, "u has shape"),
        (NET, np.full((4, 3, 2), "a"), CLASSES, None, "u has dtype"),
        (NET, U * 1j, CLASSES, None, "u has dtype"),
        (NET, np.where(np.arange(24).reshape(U.shape) == 9, np.nan, 1), CLASSES, None, r"1, 1, 1"),
        (NET, U * np.inf, CLASSES, None, "not finite"),
        (NET, U, CLASSES[:2], None, "t has dtype"),
        (NET, U, CLASSES.astype(float), None, "integer classes"),
        (NET, U, CLASSES - 1, None, "classes from -1"),
        (NET, U, CLASSES + 2, None, "to 2"),
        (NET, U, VALUES, None, "integer classes"),
        (LINEAR, U, CLASSES, None, "real numbers"),
        (LINEAR, U, VALUES * np.nan, None, "t has a value that is not finite"),
        (LINEAR, U, np.zeros((5, 3, 2)), None, "t has dtype"),
        (NET, U, CLASSES, [0, 1], "starts has dtype"),
        (NET, U, CLASSES, [0.0, 1.0, 1.0], "starts has dtype"),
        (NET, U, CLASSES, [0, 1, 4], "starts go from 0 to 4"),
        (NET, U, CLASSES, [-1, 1, 2], "starts go from -1"),
    ],
)
@every_engine
def test_a_minibatch_that_does_not_fit_is_named(engine, net, u, t, starts, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        gs.backpropagate(net, u, t, engine=engine, starts=starts)


def test_an_unknown_engine_is_refused_with_the_known_ones():
    with pytest.raises(gs.InvalidArgument, match="'cuda'; it may be 'native' or 'reference'"):
        gs.backpropagate(NET, U, CLASSES, "cuda")
    with pytest.raises(gs.InvalidArgument, match="'cuda'; it may be 'native' or 'reference'"):
        gs.predict(NET, U, "cuda")


def test_inputs_whose_sum_overflows_but_which_are_finite_are_accepted():
    large = np.full((4, 3, 2), 3e38, dtype=np.float32)
    assert np.isfinite(gs.backpropagate(NET, large, CLASSES).loss)
