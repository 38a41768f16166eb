"""Random problems for the kernel's tests, and how far from the reference an answer may be."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from gradsieve.kernel import available_isas
from gradsieve.network import SRN
from gradsieve.reference import ReferenceFlow
from oracles import random_problem

TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-12}


class Problem:
    """A network of some precision with a minibatch, and the reference's answer to it."""

    def __init__(self, sizes, output="softmax", dtype=np.float32, seed=0, isa="", **options):
        net, u, t, self.starts = random_problem(seed, *sizes, output, **options)
        self.isa, self.dtype = isa, np.dtype(dtype)
        self.net = net.astype(self.dtype)
        self.u = u.astype(self.dtype)
        self.t = t if output == "softmax" else t.astype(self.dtype)
        self.reference = ReferenceFlow(self.net, self.u, self.t, self.starts)
        self._shaken = []

    def direction(self, seed, size):
        values = np.random.default_rng(seed).normal(size=self.net.flat.size) * size
        return self.net.like(values.astype(self.dtype))

    @property
    def shaken(self):
        """The reference's answers to weights and inputs with changed last bits: what is ill-posed
        moves."""
        if not self._shaken:
            rng = np.random.default_rng(0)
            for _ in range(4):
                net: SRN = self.net.replaced(self._shake(self.net.flat, rng))
                self._shaken.append(
                    ReferenceFlow(net, self._shake(self.u, rng), self.t, self.starts)
                )
        return self._shaken

    def _shake(self, values, rng):
        signs = rng.choice([-1.0, 1.0], values.shape)
        return values.astype(np.float64) * (1 + signs * np.finfo(self.dtype).eps)

    def movement(self, of):
        """How far the last bits of the problem move what `of` gives for a flow."""
        expected = np.asarray(of(self.reference))
        return max(np.linalg.norm(np.asarray(of(flow)) - expected) for flow in self.shaken)

    def check(self, name, value, of):
        """`value` is what `of` gives for the reference, within the tolerance of the precision.

        Where the last bits of the problem move the true answer by more than a twentieth of that,
        twenty times this movement is allowed.
        """
        value, expected = np.asarray(value, dtype=np.float64), np.asarray(of(self.reference))
        scale, error = np.linalg.norm(expected), np.linalg.norm(value - expected)
        assert value.shape == expected.shape, name
        if error > TOLERANCE[self.dtype] * scale:
            message = f"{name}: {error / scale:.2g} of its size, on {self.isa}"
            assert error <= 20 * self.movement(of), message


sizes = st.tuples(
    st.integers(1, 12),  # T
    st.one_of(st.integers(1, 5), st.integers(1, 33)),  # B: within a register tile, and over several
    st.integers(1, 9),  # I
    st.one_of(st.integers(1, 12), st.integers(1, 70)),  # H: below, at and above vectors and panels
    st.one_of(st.integers(1, 6), st.integers(1, 40)),  # O
)

problems = st.builds(
    Problem,
    sizes,
    output=st.sampled_from(["softmax", "linear"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
    isa=st.sampled_from(available_isas()),
    gain=st.sampled_from([0.3, 1.0, 1.5]),
    unequal=st.booleans(),
)

problems_with_targets_at_every_step = st.builds(
    Problem,
    sizes,
    output=st.sampled_from(["softmax", "linear"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**32 - 1),
    isa=st.sampled_from(available_isas()),
    unequal=st.booleans(),
    per_step=st.just(True),
)
