"""The kernel's recurrent layers against the reference: all sizes, precisions and vector sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsieve.kernel import _native, available_isas
from gradsieve.reference import cells
from recurrent_problems import GATES, GRADIENTS, LayerProblem

every_cell = pytest.mark.parametrize("cell", GATES)
every_isa = pytest.mark.parametrize("isa", available_isas())
sizes = st.tuples(
    st.integers(1, 12),  # T
    st.one_of(st.integers(1, 5), st.integers(1, 33)),  # B
    st.one_of(st.integers(1, 9), st.integers(1, 40)),  # I
    st.one_of(st.integers(1, 12), st.integers(1, 70)),  # H
)
problems = st.builds(
    LayerProblem,
    st.sampled_from(list(GATES)),
    sizes,
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(available_isas()),
    reverse=st.booleans(),
    bias=st.booleans(),
    given=st.booleans(),
    unequal=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


@settings(max_examples=200, deadline=None)
@given(problems)
def test_a_layer_and_its_gradients_are_those_of_the_reference(problem):
    problem.check()


@every_cell
@every_isa
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(100, 10, 6, 100), (3, 140, 70, 130), (1, 1, 1, 1)])
def test_layers_of_several_blocks_agree(cell, isa, dtype, shape):
    LayerProblem(cell, shape, dtype, isa, gain=0.5).check()


@every_cell
@every_isa
@pytest.mark.parametrize("unequal", [False, True])
def test_forward_only_gives_the_same_bits(cell, isa, unequal):
    problem = LayerProblem(cell, (9, 7, 3, 21), isa=isa, unequal=unequal)
    kept, plain = problem.forward(), problem.forward(keep=False)
    assert plain[1] is plain[2] is None
    for one, other in zip(kept, plain, strict=True):
        if other is not None:
            np.testing.assert_array_equal(one, other)


@every_cell
@pytest.mark.parametrize("name", GRADIENTS)
def test_each_gradient_is_the_same_when_it_is_the_only_one(cell, name):
    problem = LayerProblem(cell, (5, 3, 4, 18))
    states = problem.forward()
    every, one = problem.backward(states), problem.backward(states, wanted=(name,))
    for key, value in one.items():
        np.testing.assert_array_equal(value, every[key])


@every_cell
def test_a_seed_that_is_none_counts_as_zero(cell):
    problem = LayerProblem(cell, (5, 3, 4, 18))
    states = problem.forward()
    zero = np.zeros_like(problem.by_last[0])
    given = (problem.rows(problem.by_h), zero, zero if cell == "lstm" else None)
    every = problem.backward(states, given)
    for name, value in problem.backward(states, (given[0], None, None)).items():
        np.testing.assert_array_equal(value, every[name])
    alone = problem.backward(states, (None, problem.by_last[0], None))
    with_zeros = problem.backward(states, (0 * given[0], problem.by_last[0], None))
    for name, value in alone.items():
        np.testing.assert_array_equal(value, with_zeros[name])


@every_cell
@every_isa
def test_saturated_units_stay_finite_and_what_is_not_a_number_stays_in_its_sequence(cell, isa):
    problem = LayerProblem(cell, (4, 5, 3, 19), isa=isa)
    problem.u *= 1e4
    found = problem.backward(problem.forward())
    assert all(np.isfinite(value).all() for value in found.values())
    problem.u[1, 2, 0] = np.nan
    h = problem.forward()[0].reshape(4, 5, 19)
    assert np.isnan(h[1:, 2]).all()
    assert np.isfinite(np.delete(h, 2, axis=1)).all()


@every_cell
@every_isa
def test_a_sequence_does_not_depend_on_the_others_in_its_minibatch(cell, isa):
    problem = LayerProblem(cell, (6, 31, 5, 37), np.float64, isa)
    alone = LayerProblem(cell, (6, 1, 5, 37), np.float64, isa)
    alone.weights, alone.u = problem.weights, problem.u[:, 17:18].copy()
    alone.initial = problem.initial[:, 17:18].copy()
    together = problem.forward()[0].reshape(6, 31, 37)[:, 17]
    np.testing.assert_allclose(alone.forward()[0], together, rtol=1e-12)


def call(problem, **changed):
    """recurrent_forward with some of its arguments changed."""
    names = ("cell", "u", "weights", "initial", "batch_sizes", "reverse")
    given = dict(zip(names, problem.arguments(), strict=True)) | changed
    out = given.pop("out", None) or problem.forward()
    return _native.recurrent_forward(*given.values(), out)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_that_does_not_fit_is_named(dtype):
    problem = LayerProblem("gru", (4, 3, 2, 5), dtype)
    W_ih, W_hh, b_ih, b_hh = problem.arguments()[2]
    other = np.float64 if dtype == np.float32 else np.float32
    h, gates, _, last, _ = problem.forward()
    wrong = [
        ({"cell": "rnn"}, "cell is 'rnn'; it may be 'tanh', 'gru' or 'lstm'"),
        ({"u": problem.u[0]}, r"u must have the axes \(T,B,I\)"),
        ({"u": problem.u[:0]}, "each must be at least 1"),
        ({"u": problem.u.astype(np.int32)}, "u must hold float32"),
        ({"u": problem.u.transpose(1, 0, 2)}, "u must be C-contiguous"),
        ({"u": None}, "u must be an array"),
        ({"weights": (W_ih, W_hh)}, "weights has 2 entries; it must have 4"),
        ({"weights": (W_ih[:-1], W_hh, b_ih, b_hh)}, r"weight_ih has shape \(14, 2\); it must be"),
        ({"weights": (W_ih, W_hh[0], b_ih, b_hh)}, "each must be at least 1"),
        ({"weights": (W_ih, W_hh, b_ih.astype(other), b_hh)}, "bias_ih must hold float"),
        (
            {"initial": (problem.initial[0, :2], None)},
            r"h0 has shape \(2, 5\); it must be \(3, 5\)",
        ),
        ({"batch_sizes": np.array([3, 3])}, r"with batch_sizes, u must have the axes \(rows,I\)"),
        ({"out": (h, gates, None, last[:, :4], None)}, "last h has shape"),
        ({"out": (h, gates[:, :3], None, last, None)}, "gates has shape"),
    ]
    for changed, message in wrong:
        with pytest.raises((ValueError, TypeError), match=message):
            call(problem, **changed)
    h.flags.writeable = False
    with pytest.raises(TypeError, match="h must be an array to write to"):
        call(problem, out=(h, gates, None, last, None))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([3, 4], "never grow"),
        ([3, 0], "at least 1"),
        ([3, 3], "u has 7 rows; the sum of batch_sizes is 6"),
        ([], "each must be at least 1|u has 7 rows"),
        ([[3, 4]], "batch_sizes has shape"),
    ],
)
def test_wrong_batch_sizes_are_refused(sizes, message):
    problem = LayerProblem("tanh", (4, 3, 2, 5))
    with pytest.raises(ValueError, match=message):
        call(problem, u=np.zeros((7, 2), np.float32), batch_sizes=np.array(sizes, np.int64))


def test_an_instruction_set_that_is_not_there_is_named():
    problem = LayerProblem("tanh", (4, 3, 2, 5), isa="mmx")
    with pytest.raises(ValueError, match="isa is 'mmx'"):
        problem.forward()


def test_a_relu_layer_of_the_reference_has_the_gradient_of_its_differences():
    rng = np.random.default_rng(0)
    weights = {
        "weight_ih": rng.normal(size=(4, 2)),
        "weight_hh": 0.5 * rng.normal(size=(4, 4)),
        "bias_ih": rng.normal(size=4),
        "bias_hh": rng.normal(size=4),
    }
    u, zero = rng.normal(size=(5, 3, 2)), np.zeros((3, 4))

    def run(weights):
        return cells.forward("relu", u, weights, (zero, zero))

    found = cells.backward(run(weights), np.ones((5, 3, 4)), (zero, zero))
    for name, weight in weights.items():
        step = 1e-6 * rng.normal(size=weight.shape)
        up, down = (run(weights | {name: weight + s}).h.sum() for s in (step, -step))
        assert (found[name] * step).sum() == pytest.approx((up - down) / 2, rel=1e-6)
