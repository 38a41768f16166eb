"""A layer's own backward pass, followed: the deltas of a second way back, and its own gradients."""

from __future__ import annotations

import numpy as np
import pytest

from gradsieve.kernel import available_isas, limit_threads, recursions, thread_limit
from recurrent_problems import GATES, GRADIENTS, NAMES, LayerProblem

KINDS = {np.float32: recursions.Linearised32, np.float64: recursions.Linearised64}
SIZES = [(5, 3, 2, 4), (40, 17, 3, 33), (1, 1, 1, 1), (7, 60, 3, 20)]  # T, B, I, H
every_cell = pytest.mark.parametrize("cell", GATES)
every_isa = pytest.mark.parametrize("isa", available_isas())


class Followed:
    """One layer forward and backward, and a linearised layer that may follow it."""

    def __init__(self, cell, size, dtype=np.float32, isa="", seeds="last", gain=1.0):
        problem = LayerProblem(cell, size, dtype, isa, gain=gain)
        self.T, self.B, self.I, self.H = size
        self.cell, self.u, gates, lstm = cell, problem.u, GATES[cell] > 1, cell == "lstm"
        if gates and gain < 1:  # nothing goes round W_hh: z of a gru and f of an lstm are shut
            problem.weights["bias_ih"][self.H : 2 * self.H] -= 4
        self.weights = [problem.weights[name] for name in NAMES]
        self.initial = [problem.initial[0], problem.initial[1] if lstm else None]
        new = lambda *shape: np.empty(shape, dtype)  # noqa: E731
        self.h = new(self.T, self.B, self.H)
        self.gates = new(self.T, self.B, 4, self.H) if gates else None
        self.c = new(self.T, self.B, self.H) if lstm else None
        last = new(self.B, self.H), new(self.B, self.H) if lstm else None
        self.given = cell, self.u, tuple(self.weights), tuple(self.initial), None, False
        recursions.recurrent_forward(*self.given, (self.h, self.gates, self.c, *last), isa)
        self.by_h = np.zeros_like(self.h)
        if seeds == "every":
            self.by_h[:] = problem.by_h
        else:  # of each sequence one, none of the first
            self.ends = np.arange(self.B) % (self.T + 1) - 1
            self.ends[-1] = self.T - 1
            some = np.flatnonzero(self.ends >= 0)
            self.by_h[self.ends[some], some] = problem.by_h[self.ends[some], some]
        self.layer = KINDS[dtype](cell, *size, isa)
        self.dtype, self.isa = dtype, isa

    def backward(self, followed=None):
        """The gradients, and whether the deltas are those of single steps."""
        shapes = [self.u.shape, *[(self.B, self.H)] * 2, *[w.shape for w in self.weights]]
        out = [np.empty(shape, self.dtype) for shape in shapes]
        if self.cell != "lstm":
            out[2] = None
        states, seeds = (self.h, self.gates, self.c), (self.by_h, None, None)
        alone = recursions.recurrent_backward(
            *self.given, states, seeds, tuple(out), self.isa, followed
        )
        return dict(zip(GRADIENTS, out, strict=True)), alone

    def other(self):
        """The same deltas by a way back of its own."""
        layer = KINDS[self.dtype](self.cell, self.T, self.B, self.I, self.H, self.isa)
        layer.load(self.u, self.h, self.initial, self.weights)
        gamma = [self.by_h[self.ends.clip(min=0), np.arange(self.B)], None][: 1 + self.two_parts]
        layer.pull(gamma, self.ends)
        return layer

    @property
    def two_parts(self):
        return self.cell == "lstm"

    def recall(self):
        self.layer.recall(self.u, self.h, self.initial, self.weights, self.gates, self.c)


def true(layer):
    exponents = np.array(layer.exponents)[:, :, None, None]
    return np.ldexp(np.array(layer.delta, np.float64), exponents)


def close(found, expected, dtype):
    scale = np.abs(expected).max(axis=(-2, -1), keepdims=True)  # each delta by its own size
    error = np.abs(found - expected) / np.where(scale > 0, scale, 1.0)
    assert error.max() < (2e-4 if dtype == np.float32 else 1e-11)


@every_isa
@every_cell
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_the_deltas_are_those_of_a_second_way_back(cell, isa, dtype, size):
    case = Followed(cell, size, dtype, isa)
    plain, _ = case.backward()
    followed, alone = case.backward(case.layer)
    assert alone
    np.testing.assert_array_equal(case.layer.last, case.ends)
    close(true(case.layer), true(case.other()), dtype)
    for name in plain:  # a step that is judged and kept is the plain one
        if plain[name] is not None:
            np.testing.assert_array_equal(followed[name], plain[name])


@every_isa
@every_cell
def test_deltas_that_have_vanished_beyond_float32_are_right(cell, isa):
    case = Followed(cell, (300, 4, 2, 12), np.float32, isa, gain=0.2)
    case.by_h[:-1], case.by_h[-1], case.ends[:] = 0, case.by_h[-1, -1], 299
    gradients, alone = case.backward(case.layer)
    expected = true(case.other())
    far = np.abs(expected[0]).max()
    assert alone
    assert 0 < far < 1e-45
    close(true(case.layer), expected, np.float32)
    assert all(np.isfinite(one).all() for one in gradients.values() if one is not None)


@every_isa
@every_cell
@pytest.mark.parametrize("dtype", KINDS)
def test_slopes_from_what_was_followed_are_those_of_a_second_way(cell, isa, dtype):
    case = Followed(cell, (30, 5, 3, 20), dtype, isa)
    case.backward(case.layer)
    case.recall()
    other = case.other()
    weights = np.zeros((case.T, case.B))
    weights[:4] = 0.25
    weights[:, case.ends < 4] = 0
    ends = case.layer.slow_ends(weights, case.ends)
    squares = np.ldexp(ends[::2], 2 * ends[1::2].astype(int))
    near = true(other)[case.ends.clip(min=0), np.arange(case.B)]
    slow = (weights[:, :, None, None] * true(other)).sum(0)
    for found, delta in zip(squares, (near, slow), strict=True):
        rtol = 1e-3 if dtype == np.float32 else 1e-10
        np.testing.assert_allclose(found, np.square(delta).sum((1, 2)), rtol=rtol)

    # ψ by its own formula, through push_cotangent and bend_cotangent.
    units = np.array(other.exponents)
    some = (squares > 0).all(0)
    over = lambda delta: np.where(  # noqa: E731
        some[:, None, None],
        delta / np.where(some, np.square(delta).sum((1, 2)), 1)[:, None, None],
        0,
    )
    scale = np.ldexp(1.0, units[case.ends.clip(min=0), np.arange(case.B)])[:, None, None]
    other.push_cotangent(
        (0.3 * over(near) * scale).astype(dtype),
        over(slow).astype(dtype),
        np.ldexp(-0.3 * weights * some, units),
        case.ends,
    )
    other.bend_cotangent()
    found = case.layer.slow_slopes(weights, case.ends, 0.3)
    for one, expected in zip(found, other.by_weights(), strict=True):
        tolerance = np.abs(expected).max() * (1e-4 if dtype == np.float32 else 1e-11)
        np.testing.assert_allclose(one, expected, rtol=0, atol=tolerance)


@every_cell
def test_gradients_at_several_steps_are_not_taken_for_one(cell):
    case = Followed(cell, (6, 3, 2, 5), seeds="every")
    plain, _ = case.backward()
    followed, alone = case.backward(case.layer)
    assert not alone
    for name in plain:
        if plain[name] is not None:
            np.testing.assert_array_equal(followed[name], plain[name])


@every_cell
def test_threads_change_no_bit_of_what_is_followed(cell):
    case = Followed(cell, (60, 64, 3, 128))
    most, found = thread_limit(), []
    try:
        for threads in (1, 2):
            limit_threads(threads, True)
            gradients, _ = case.backward(case.layer)
            found.append([*gradients.values(), np.array(case.layer.delta)])
    finally:
        limit_threads(most)
    for one, other in zip(*found, strict=True):
        if one is not None:
            np.testing.assert_array_equal(one, other)


def test_what_does_not_fit_is_refused():
    case = Followed("gru", (6, 3, 2, 5))
    with pytest.raises(TypeError, match="in the precision of u"):
        case.backward(recursions.Linearised64("gru", 6, 3, 2, 5))
    with pytest.raises(ValueError, match="another cell or other sizes"):
        case.backward(recursions.Linearised32("gru", 6, 3, 2, 6))
    with pytest.raises(ValueError, match="another cell or other sizes"):
        case.backward(recursions.Linearised32("lstm", 6, 3, 2, 5))
    case.backward(case.layer)
    with pytest.raises(ValueError, match="call load first"):
        case.layer.slow_slopes(np.zeros((6, 3)), case.ends, 1.0)
    with pytest.raises(ValueError, match="gates and, of an lstm, c must be given"):
        case.layer.recall(case.u, case.h, case.initial, case.weights)
    case.recall()
    with pytest.raises(ValueError, match="weights has shape"):
        case.layer.slow_slopes(np.zeros((5, 3)), case.ends, 1.0)
    case.layer.slow_slopes(np.zeros((6, 3)), case.ends, 1.0)
    with pytest.raises(ValueError, match="call push first"):
        case.layer.bend_cotangent()
