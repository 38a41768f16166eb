"""The derivatives of a cell's `update`, for all steps of a sequence at once.

With every state known, x(n), a(n) and s(n−1) are known for all n, and the derivatives at one step
do not wait for those at another. The time loop that is left (recursion.py) is linear.

For a *unitwise* cell the Jacobian is one small block per unit: K = ∂s/∂a and L = ∂s/∂s(n−1) are
tables. Otherwise each step's Jacobian is applied by autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.func import jvp, vjp

from gradsieve.torch.evidence.forward import LayerRun
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import State, Weights


@dataclass(frozen=True)
class Pulled:
    """∂/∂x, ∂/∂a and ∂/∂s(n−1) of ⟨g, update⟩, without what goes through a."""

    x: Tensor
    a: Tensor
    state: tuple[Tensor | None, ...]  # None for a part that has no such gradient


def _pull(function: Callable[..., Any], point: tuple[Any, ...], g: Any) -> Any:
    """The gradient of ⟨g, function⟩ at a point."""
    return vjp(function, *point)[1](g)


def _push(function: Callable[..., Any], point: tuple[Any, ...], change: tuple[Any, ...]) -> Any:
    """The derivative of a function at a point along a change of it."""
    return jvp(function, point, change)[1]


class Local:
    """`update` of one layer, linearised at every step."""

    def __init__(self, run: LayerRun) -> None:
        self.run = run
        self.extra = cells.beyond_linear(run.weights)

    def _update(self, x: Tensor, a: Tensor, state: State, extra: Weights) -> State:
        return self.run.cell.update(x, a, state, extra)

    def pull(self, g: State) -> Pulled:
        """The gradient of ⟨g(n), update⟩ at every step."""
        run = self.run
        update = lambda x, a, s: self._update(x, a, s, self.extra)  # noqa: E731
        return Pulled(*_pull(update, (run.x, run.a, run.before), g))

    def push(self, x: Tensor, extra: Weights) -> State:
        """The change of s(n) along changes of x and the further weights, a and s(n−1) held."""
        run = self.run
        held = tuple(torch.zeros_like(part) for part in run.before)
        change: State = _push(
            self._update,
            (run.x, run.a, run.before, self.extra),
            (x, torch.zeros_like(run.a), held, dict(extra)),
        )
        return change

    def bend(self, g: State, x: Tensor, a: Tensor, before: State, extra: Weights) -> Pulled:
        """The change of `pull(g)`, g held, along changes of x, a, s(n−1) and further weights."""
        run = self.run

        def pull_at(
            x: Tensor, a: Tensor, state: State, extra: Weights
        ) -> tuple[Tensor, Tensor, State]:
            pulled: tuple[Tensor, Tensor, State] = _pull(
                lambda x, a, s: self._update(x, a, s, extra), (x, a, state), g
            )
            return pulled

        change = _push(
            pull_at,
            (run.x, run.a, run.before, self.extra),
            (x, a, before, dict(extra)),
        )
        return Pulled(*change)

    def pull_step(self, n: int, g: State) -> tuple[Tensor, list[Tensor | None]]:
        """At step index n: the gradients by a and by the parts of s(n−1)."""
        raise NotImplementedError

    def push_step(self, n: int, a: Tensor, state: State) -> list[Tensor]:
        """At step index n: the change of s along changes of a and s(n−1)."""
        raise NotImplementedError


class UnitwiseLocal(Local):
    """Tables K[s] (T,B,G,H) and L[s][s′] (T,B,H); None where `update` ignores that part."""

    @cached_property
    def _jacobians(self) -> tuple[list[Tensor], list[list[Tensor | None]]]:
        run = self.run
        with torch.enable_grad():
            a = run.a.detach().requires_grad_()
            before = tuple(part.detach().requires_grad_() for part in run.before)
            after = self._update(run.x, a, before, self.extra)
            tables = [
                torch.autograd.grad(
                    part, (a, *before), torch.ones_like(part), retain_graph=True, allow_unused=True
                )
                for part in after
            ]
        return [table[0] for table in tables], [list(table[1:]) for table in tables]

    @property
    def K(self) -> list[Tensor]:
        return self._jacobians[0]

    @property
    def L(self) -> list[list[Tensor | None]]:
        return self._jacobians[1]

    def pull_step(self, n: int, g: State) -> tuple[Tensor, list[Tensor | None]]:
        delta = self.K[0][n] * g[0].unsqueeze(-2)
        for table, part in zip(self.K[1:], g[1:], strict=True):
            delta = torch.addcmul(delta, table[n], part.unsqueeze(-2))
        back: list[Tensor | None] = []
        for column in range(len(g)):
            total: Tensor | None = None
            for row, part in zip(self.L, g, strict=True):
                one = row[column]
                if one is not None:
                    total = one[n] * part if total is None else torch.addcmul(total, one[n], part)
            back.append(total)
        return delta, back

    def push_step(self, n: int, a: Tensor, state: State) -> list[Tensor]:
        moved = []
        for table, row in zip(self.K, self.L, strict=True):
            total = (table[n] * a).sum(-2)
            for one, part in zip(row, state, strict=True):
                if one is not None:
                    total = torch.addcmul(total, one[n], part)
            moved.append(total)
        return moved


class MixingLocal(Local):
    """A cell whose `update` mixes units: its Jacobian is applied, never formed."""

    def pull_step(self, n: int, g: State) -> tuple[Tensor, list[Tensor | None]]:
        x, (a, before) = self.run.x[n], self._at(n)
        delta, state = _pull(lambda a, s: self._update(x, a, s, self.extra), (a, before), g)
        return delta, list(state)

    def push_step(self, n: int, a: Tensor, state: State) -> list[Tensor]:
        x = self.run.x[n]
        change = _push(lambda a, s: self._update(x, a, s, self.extra), self._at(n), (a, state))
        return list(change)

    def _at(self, n: int) -> tuple[Tensor, State]:
        return self.run.a[n], tuple(part[n] for part in self.run.before)


def linearise(run: LayerRun) -> Local:
    """The derivatives of one layer's `update` at every step."""
    return UnitwiseLocal(run) if run.cell.unitwise else MixingLocal(run)
