"""The two linear recursions in time, for any cell: gradients go back, changes go forward.

Back, n = T … 1 (`pull_back`), for the deltas and, with other terms added, for their change:

    g(n) = carried + injected(n)
    δ(n) = Kᵀ(n) g(n) + added          carried = Lᵀ(n) g(n) + added′ + [δ(n) W_hh on h]

Forward (`push_forward`):

    da(n) = explicit(n) + dh(n−1) W_hhᵀ      ds(n) = R(n) + K(n) da(n) + L(n) ds(n−1)

Deltas may fall far below what a float holds. So g(n) and δ(n) of example i are in units of
2**exponents[n,i], chosen at every step such that the largest g(n) lies between ½ and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gradsieve.network import Array
from gradsieve.torch.evidence.local import Local
from gradsieve.torch.modules.cells import State, in_blocks

NOTHING = -(2**24)  # the exponent of zero
STEEPEST = 126  # a float32 holds 2**±126 as a normal number


@dataclass(frozen=True)
class Scaled:
    """A sequence (T,B,·) of each part of a state, in units of 2**exponents, (T,B) int32."""

    parts: State
    exponents: Tensor


@dataclass(frozen=True)
class Deltas:
    """δ (T,B,G,H) and g, parts (T,B,·), both in units of 2**exponents, (T,B) int32."""

    delta: Tensor
    g: State
    exponents: Tensor

    def average(self, weights: Array) -> tuple[Array, Array]:
        """Σ w(n) δ(n) of each example, (B,·), in units of 2**(its largest's exponent), (B,)."""
        delta = self.delta.flatten(2)
        units = self.exponents.cpu().numpy().astype(np.int64)
        some = (weights > 0) & (delta != 0).any(-1).cpu().numpy()
        # One unit for an example's whole window, that of its largest delta: a step that rounds to
        # zero in it adds nothing to the average.
        common = np.where(some, units, NOTHING).max(0)
        factors = np.ldexp(np.where(some, weights, 0.0), np.clip(units - common, -2000, 0))
        total = torch.einsum("nb,nbk->bk", torch.from_numpy(factors).to(delta), delta)
        return total.cpu().numpy(), common

    def slow_ends(self, weights: Array, last: Array) -> Array:
        """(4,B): squares and units of each example's last δ, and of its average."""
        step, everyone = torch.from_numpy(last.clip(min=0)), torch.arange(len(last))
        near = self.delta.flatten(2)[step, everyone].cpu().numpy()
        units = self.exponents[step, everyone].cpu().numpy()
        slow, slow_units = self.average(weights)
        squares = [np.square(one, dtype=np.float64).sum(1) for one in (near, slow)]
        return np.array([squares[0], units, squares[1], slow_units])


def add(one: Scaled, other: Scaled) -> Scaled:
    """Their sum, in units that suit the larger of the two at each step of each example."""
    exponents = torch.maximum(_units(one), _units(other))
    exponents = torch.where(exponents == NOTHING, 0, exponents)
    parts = tuple(
        torch.ldexp(left, (one.exponents - exponents).unsqueeze(-1))
        + torch.ldexp(right, (other.exponents - exponents).unsqueeze(-1))
        for left, right in zip(one.parts, other.parts, strict=True)
    )
    return Scaled(parts, exponents)


def _units(scaled: Scaled) -> Tensor:
    some = torch.stack([(part != 0).any(-1) for part in scaled.parts]).any(0)
    return torch.where(some, scaled.exponents, NOTHING)


@dataclass(frozen=True)
class Added:
    """What is added to δ(n), and to what g(n) carries to g(n−1), at every step."""

    delta: Tensor | None
    state: list[Tensor | None]


def pull_back(
    local: Local,
    weight_hh: Tensor,
    injected: Scaled | None,
    added: Added | None = None,
    exponents: Tensor | None = None,
) -> Deltas:
    """Back through time; `exponents` fixes the units, and `added` is in those units."""
    if injected is None:
        assert exponents is not None
        nothing = tuple(torch.zeros_like(part) for part in local.run.after)
        injected = Scaled(nothing, exponents)
    steps = injected.exponents.shape[0]
    carried = [torch.zeros_like(part[0]) for part in injected.parts]
    units = torch.zeros_like(injected.exponents[0])
    deltas, states, chosen = [], [], []
    for n in reversed(range(steps)):
        entering = [part[n] for part in injected.parts]
        if exponents is None:
            now = torch.maximum(
                _magnitude(carried, units), _magnitude(entering, injected.exponents[n])
            )
            now = torch.where(now <= NOTHING // 2, 0, now)
        else:
            now = exponents[n]
        g = tuple(
            rescaled(old, units - now) + rescaled(new, injected.exponents[n] - now)
            for old, new in zip(carried, entering, strict=True)
        )
        units = now
        delta, back = local.pull_step(n, g)
        if added is not None and added.delta is not None:
            delta = delta + added.delta[n]
        through = delta.flatten(-2) @ weight_hh
        back[0] = through if back[0] is None else back[0] + through
        if added is not None:
            back = [
                old if more is None else more[n] if old is None else old + more[n]
                for old, more in zip(back, added.state, strict=True)
            ]
        carried = [
            torch.zeros_like(part) if new is None else new
            for new, part in zip(back, g, strict=True)
        ]
        deltas.append(delta)
        states.append(g)
        chosen.append(now)
    parts = tuple(torch.stack(part[::-1]) for part in zip(*states, strict=True))
    return Deltas(torch.stack(deltas[::-1]), parts, torch.stack(chosen[::-1]))


def push_forward(
    local: Local, weight_hh: Tensor, explicit: Tensor, R: State | None
) -> tuple[Tensor, State]:
    """Changes da(1) … da(T) and ds(1) … ds(T), from ds(0) = 0; R may be none at all."""
    gates = len(local.run.cell.gates)
    state = tuple(torch.zeros_like(part[0]) for part in local.run.after)
    products, changes = [], []
    for n in range(explicit.shape[0]):
        da = explicit[n] + in_blocks(state[0] @ weight_hh.T, gates)
        moved = local.push_step(n, da, state)
        state = tuple(more if R is None else R[index][n] + more for index, more in enumerate(moved))
        products.append(da)
        changes.append(state)
    return torch.stack(products), tuple(torch.stack(p) for p in zip(*changes, strict=True))


def _magnitude(parts: list[Tensor], exponents: Tensor) -> Tensor:
    """(B,): the exponent of the largest of each example; NOTHING where all is zero."""
    largest = torch.stack([part.abs().amax(-1) for part in parts]).amax(0)
    exponent = torch.frexp(largest).exponent.clamp(-STEEPEST, STEEPEST)
    usable = (largest > 0) & torch.isfinite(largest)
    return torch.where(usable, exponents + exponent, NOTHING)


def rescaled(values: Tensor, shift: Tensor) -> Tensor:
    """values · 2**shift; a shift beyond what a float holds is of zeros, or down to zero."""
    factor = torch.exp2(shift.clamp(-2 * STEEPEST, STEEPEST).to(values.dtype))
    return values * factor.unsqueeze(-1)
