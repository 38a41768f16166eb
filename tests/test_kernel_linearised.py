"""The kernel's linearised layers against finite differences of their cells in NumPy.

δ is checked against a forward pass, and what else there is against differences of δ itself.
"""

from __future__ import annotations

import numpy as np
import pytest

from gradsieve.kernel import available_isas, recursions

KINDS = {np.float32: recursions.Linearised32, np.float64: recursions.Linearised64}
GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}
SIZES = [(5, 3, 2, 4), (4, 17, 3, 33), (1, 1, 1, 1), (3, 2, 40, 16)]  # T, B, I, H
NAMES = ("W_ih", "W_hh", "b_ih", "b_hh")


def logistic(v):
    return 1 / (1 + np.exp(-v))


def step(cell, x, a, state):
    """The state after a step, from the products (B,G,H) and the state before."""
    if cell in ("tanh", "relu"):
        v = (x + a)[:, 0]
        return [np.tanh(v) if cell == "tanh" else np.maximum(v, 0)]
    if cell == "gru":
        r, z = logistic(x[:, 0] + a[:, 0]), logistic(x[:, 1] + a[:, 1])
        n = np.tanh(x[:, 2] + r * a[:, 2])
        return [n + z * (state[0] - n)]
    i, f, g, o = (x + a).swapaxes(0, 1)
    c = logistic(f) * state[1] + logistic(i) * np.tanh(g)
    return [logistic(o) * np.tanh(c), c]


class Case:
    """Weights, inputs and γ of one layer, in double precision."""

    def __init__(self, cell, size, seed=0):
        self.cell, (self.T, self.B, self.I, self.H) = cell, size
        self.G, self.parts = GATES[cell], 2 if cell == "lstm" else 1
        draw = np.random.default_rng(seed).standard_normal
        rows = self.G * self.H
        shapes = {"W_ih": (rows, self.I), "W_hh": (rows, self.H), "b_ih": rows, "b_hh": rows}
        self.weights = {name: draw(shape) for name, shape in shapes.items()}
        self.weights["W_hh"] *= 1.5 / self.H**0.5
        self.update = {name: draw(shape) for name, shape in shapes.items()}
        self.u, self.du = draw((2, self.T, self.B, self.I))
        self.initial = list(draw((self.parts, self.B, self.H)))
        self.gamma = list(draw((self.parts, self.B, self.H)))
        self.above, self.dabove = draw((2, self.T, self.B, self.H))
        self.last = np.arange(self.B) % (self.T + 1) - 1  # some enter nowhere
        self.last[-1] = self.T - 1
        self.psi = draw((self.T, self.B, self.G, self.H))
        self.near, self.slow = draw((2, self.B, self.G, self.H))
        self.factors = draw((self.T, self.B))
        self.factors[np.arange(self.T)[:, None] > self.last] = 0

    def moved(self, scale):
        """The weights and inputs, moved along the update."""
        weights = {name: self.weights[name] + scale * self.update[name] for name in NAMES}
        return weights, self.u + scale * self.du

    def states(self, weights, u, added=0.0):
        """Every part of s(1) … s(T); `added` goes to the products that W_hh feeds."""
        state, found = self.initial, []
        for n in range(self.T):
            shape = self.B, self.G, self.H
            x = (u[n] @ weights["W_ih"].T + weights["b_ih"]).reshape(shape)
            a = (state[0] @ weights["W_hh"].T + weights["b_hh"]).reshape(shape)
            state = step(self.cell, x, a + (added[n] if np.ndim(added) else added), state)
            found.append(state)
        return [np.array(part) for part in zip(*found, strict=True)]

    def layer(self, weights, u, dtype=np.float64, isa="", above=0.0):
        """One that was loaded and pulled."""
        cast = lambda array: np.ascontiguousarray(array, dtype)  # noqa: E731
        layer = KINDS[dtype](self.cell, self.T, self.B, self.I, self.H, isa)
        h = self.states(weights, u)[0]
        initial = [*map(cast, self.initial), None][:2]
        layer.load(cast(u), cast(h), initial, [cast(weights[name]) for name in NAMES])
        given = cast(self.above + above * self.dabove)
        layer.pull([cast(part) for part in self.gamma], self.last, given)
        return layer

    def delta(self, scale, above=0.0):
        return true(self.layer(*self.moved(scale), above=above))

    def delta_of_weights(self, scale):
        return true(self.layer(self.moved(scale)[0], self.u))

    def objective(self, added):
        """What δ is the gradient of."""
        states = self.states(self.weights, self.u, added)
        total = (states[0] * self.above).sum()
        for b in np.flatnonzero(self.last >= 0):
            total += sum(s[self.last[b], b] @ g[b] for s, g in zip(states, self.gamma, strict=True))
        return total


def true(layer, name="delta"):
    return np.ldexp(np.array(getattr(layer, name), float), layer.exponents[:, :, None, None])


def difference(function, size=1e-6):
    return (function(size) - function(-size)) / (2 * size)


def close(found, expected, dtype=np.float64):
    rough = dtype == np.float32
    scale = float(np.abs(expected).max(initial=0))
    tolerance = {"rtol": 1e-3, "atol": 2e-4 * scale} if rough else {"rtol": 1e-5, "atol": 1e-7}
    np.testing.assert_allclose(found, expected, **tolerance)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cell", GATES)
def test_deltas_are_the_gradient_by_the_products(cell, size, isa):
    case = Case(cell, size)
    layer = case.layer(case.weights, case.u, isa=isa)
    slope = difference(lambda scale: case.objective(scale * case.psi))
    np.testing.assert_allclose((true(layer) * case.psi).sum(), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cell", GATES)
def test_every_pass_is_the_derivative_of_the_one_before(cell, size, isa, dtype):
    case = Case(cell, size)
    cast = lambda array: np.ascontiguousarray(array, dtype)  # noqa: E731
    layer = case.layer(case.weights, case.u, dtype, isa)
    update = [cast(case.update[name]) for name in NAMES]
    close(true(layer), case.delta(0.0), dtype)

    # The change of δ along an update, and of ∂/∂u.
    layer.push_update(*update, cast(case.du))
    close(layer.after, difference(lambda s: case.states(*case.moved(s))[0]), dtype)
    dabove = np.ldexp(case.dabove, -layer.exponents[:, :, None])
    layer.bend_update(*update[:2], cast(dabove), layer.exponents)
    close(true(layer, "change"), difference(lambda s: case.delta(s, above=s)), dtype)

    def by_inputs(scale):
        weights, u = case.moved(scale)
        found = case.layer(weights, u, above=scale).by_inputs(np.ascontiguousarray(weights["W_ih"]))
        return np.ldexp(found, layer.exponents[:, :, None])

    close(
        np.ldexp(
            np.array(layer.by_inputs(cast(case.weights["W_ih"]), update[0], of_change=True), float),
            layer.exponents[:, :, None],
        ),
        difference(by_inputs),
        dtype,
    )

    # The slope of Σ ψ δ, where ψ is what push_cotangent makes of its arguments.
    units = np.ldexp(1.0, layer.exponents)
    layer.push_cotangent(cast(case.near), cast(case.slow), case.factors, case.last)
    layer.bend_cotangent()
    psi = case.factors[:, :, None, None] * case.slow
    at = np.flatnonzero(case.last >= 0)
    psi[case.last[at], at] += case.near[at]
    psi /= units[:, :, None, None]
    slope = difference(lambda s: (psi * case.delta_of_weights(s)).sum())
    found = zip(NAMES, layer.by_weights(), strict=True)
    total = sum((slopes * case.update[name]).sum() for name, slopes in found)
    rough = 2e-3 if dtype == np.float32 else 1e-6
    assert total == pytest.approx(slope, rel=rough, abs=1e-6 + rough * abs(slope))


@pytest.mark.parametrize("cell", GATES)
def test_deltas_stay_numbers_where_they_leave_the_range_of_a_float(cell):
    case = Case(cell, (400, 2, 1, 8))
    case.weights["W_hh"] *= 1e-3 if cell in ("tanh", "relu") else 0.1
    case.weights["b_hh"][: case.H * (case.G > 1)] -= 5
    case.weights["b_hh"][case.H : 2 * case.H] -= 5 if case.G > 1 else 0
    case.above[:] = case.dabove[:] = 0
    case.last[:] = 399
    single = case.layer(case.weights, case.u, np.float32)
    double = case.layer(case.weights, case.u, np.float64)
    assert double.exponents[0].max() < -500
    size = {}
    for layer in (single, double):
        tops = np.abs(np.array(layer.delta, float)).max((2, 3))
        size[layer] = np.log2(np.where(tops > 0, tops, np.nan)) + layer.exponents
    assert np.isfinite(size[double]).all()
    np.testing.assert_allclose(size[single], size[double], rtol=1e-4, atol=1e-2)


def test_the_average_is_in_units_of_its_largest():
    case = Case("gru", (6, 3, 2, 5))
    layer = case.layer(case.weights, case.u)
    weights = np.random.default_rng(1).random((6, 3))
    total, units = layer.slow(weights)
    some = units > -(2**20)
    found = np.ldexp(total[some], units[some, None, None])
    expected = (weights[:, :, None, None] * true(layer)).sum(0)
    np.testing.assert_allclose(found, expected[some], rtol=1e-12)
    assert not expected[~some].any()


def test_wrong_arrays_and_wrong_order_are_named():
    with pytest.raises(ValueError, match="cell is 'elman'; it may be"):
        recursions.Linearised64("elman", 1, 1, 1, 1)
    with pytest.raises(ValueError, match="at least 1"):
        recursions.Linearised64("gru", 1, 0, 1, 1)
    case = Case("gru", (5, 3, 2, 4))
    layer = recursions.Linearised64("gru", 5, 3, 2, 4)
    with pytest.raises(ValueError, match="call load first"):
        layer.pull(case.gamma, case.last)
    with pytest.raises(ValueError, match="call pull first"):
        _ = layer.delta
    layer = case.layer(case.weights, case.u)
    with pytest.raises(ValueError, match="call push_cotangent first"):
        layer.bend_cotangent()
    with pytest.raises(ValueError, match=r"last has shape \(2\); it must be \(3\)"):
        layer.pull(case.gamma, case.last[:2])
    with pytest.raises(ValueError, match="gamma has 2 parts; it must have 1"):
        layer.pull(case.gamma * 2, case.last)
    with pytest.raises(ValueError, match=r"update of W_hh has shape"):
        layer.push_update(case.update["W_ih"], case.update["W_ih"], None, None)
    with pytest.raises(TypeError):
        layer.pull([case.gamma[0].astype(np.float32)], case.last)
