"""A random recurrent layer through the kernel and through the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradsieve.kernel import _native
from gradsieve.reference import cells

GATES = {"tanh": 1, "gru": 3, "lstm": 4}
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
GRADIENTS = ("u", "h0", "c0", *NAMES)


@dataclass
class LayerProblem:
    cell: str
    sizes: tuple[int, int, int, int]  # T, B, I, H
    dtype: Any = np.float32
    isa: str = ""
    reverse: bool = False
    bias: bool = True
    given: bool = True  # initial states
    unequal: bool = False
    seed: int = 0
    gain: float = 1.0

    def __post_init__(self):
        T, B, I, H = self.sizes  # noqa: E741
        rng = np.random.default_rng(self.seed)
        gates = GATES[self.cell] * H

        def drawn(*shape, size=1.0):
            return (size * rng.normal(size=shape)).astype(self.dtype)

        self.weights = {
            "weight_ih": drawn(gates, I, size=self.gain / np.sqrt(I)),
            "weight_hh": drawn(gates, H, size=self.gain / np.sqrt(H)),
            "bias_ih": drawn(gates),
            "bias_hh": drawn(gates),
        }
        self.u = drawn(T, B, I)
        self.initial = drawn(2, B, H)
        self.by_h, self.by_last = drawn(T, B, H), drawn(2, B, H)
        if not self.bias:
            self.weights["bias_ih"][:] = self.weights["bias_hh"][:] = 0
        if not self.given:
            self.initial[:] = 0
        if self.cell != "lstm":
            self.initial[1] = self.by_last[1] = 0
        later = sorted(rng.integers(1, B + 1, T - 1).tolist(), reverse=True)
        self.counts = [B, *later] if self.unequal else [B] * T

    def rows(self, values):
        """(rows, ·): the steps of (T,B,·), each with the sequences that it has."""
        parts = [values[n, :count] for n, count in enumerate(self.counts)]
        return np.ascontiguousarray(np.concatenate(parts))

    def empty(self, *shape):
        return np.full(shape, np.nan, self.dtype)

    def arguments(self):
        has_c = self.given and self.cell == "lstm"
        weights = [self.weights[n] if self.bias or n[0] == "w" else None for n in NAMES]
        initial = (self.initial[0] if self.given else None, self.initial[1] if has_c else None)
        sizes = np.array(self.counts) if self.unequal else None
        u = self.rows(self.u) if self.unequal else self.u
        return self.cell, u, tuple(weights), initial, sizes, self.reverse

    def forward(self, keep=True):
        """h, gates, c, last h and last c of the kernel."""
        B, H, rows = self.sizes[1], self.sizes[3], sum(self.counts)
        gated, lstm = self.cell != "tanh", self.cell == "lstm"
        states = (
            self.empty(rows, H),
            self.empty(rows, 4, H) if keep and gated else None,
            self.empty(rows, H) if keep and lstm else None,
            self.empty(B, H),
            self.empty(B, H) if lstm else None,
        )
        _native.recurrent_forward(*self.arguments(), states, self.isa)
        return states

    def backward(self, states, seeds=None, wanted=GRADIENTS):
        """The kernel's gradients by name."""
        _, B, I, H = self.sizes  # noqa: E741
        gates, lstm = GATES[self.cell] * H, self.cell == "lstm"
        shapes = {"u": (sum(self.counts), I), "h0": (B, H), "c0": (B, H)}
        shapes |= {"weight_ih": (gates, I), "weight_hh": (gates, H)}
        shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        absent = set() if lstm else {"c0"}
        found = {n: self.empty(*shapes[n]) for n in wanted if n not in absent}
        if seeds is None:
            seeds = (self.rows(self.by_h), self.by_last[0], self.by_last[1] if lstm else None)
        out = tuple(found.get(name) for name in GRADIENTS)
        _native.recurrent_backward(*self.arguments(), states[:3], seeds, out, self.isa)
        return found

    def reference(self):
        u, initial = self.u.astype(float), self.initial.astype(float)
        weights = {name: value.astype(float) for name, value in self.weights.items()}
        run = cells.forward(self.cell, u, weights, tuple(initial), self.counts, self.reverse)
        return run, cells.backward(run, self.by_h.astype(float), tuple(self.by_last.astype(float)))

    def check(self):
        """Everything that the kernel finds is what the reference finds."""
        run, expected = self.reference()
        states = self.forward()
        self.close("h", states[0], self.rows(run.h))
        self.close("last h", states[3], run.last[0])
        if self.cell == "lstm":
            self.close("last c", states[4], run.last[1])
        found = self.backward(states)
        expected["u"] = self.rows(expected["u"])
        for name, value in found.items():
            self.close(f"gradient of {name}", value, expected[name])

    def close(self, name, value, expected):
        tolerance = 2e-5 if self.dtype == np.float32 else 1e-12
        error = np.linalg.norm(value - expected)
        assert error <= tolerance * (1 + np.linalg.norm(expected)), f"{name}: {error:.2g}"
