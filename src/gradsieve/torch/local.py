"""The derivatives of a cell's `update`, for all steps of a sequence at once.

With every state known, x(n), a(n) and s(n−1) are known for all n, and the derivatives at one step
do not wait for those at another. What is left for the time loop (`gradsieve.torch.recursion`) is
linear.

For a *unitwise* cell the Jacobian is one small block per unit: K = ∂s/∂a and L = ∂s/∂s(n−1) are
tables. Otherwise each step's Jacobian is applied by autograd.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import jvp, vjp

from gradsieve.torch import cells
from gradsieve.torch.cells import State, Weights
from gradsieve.torch.forward import LayerRun


@dataclass(frozen=True)
class Pulled:
    """∂/∂x, ∂/∂a and ∂/∂s(n−1) of ⟨g, update⟩, without what goes through a."""

    x: Tensor
    a: Tensor
    state: State


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
        _, back = vjp(lambda x, a, s: self._update(x, a, s, self.extra), run.x, run.a, run.before)
        return Pulled(*back(g))

    def push(self, x: Tensor, a: Tensor, extra: Weights) -> State:
        """The change of s(n) along changes of x, a and the further weights, s(n−1) held."""
        run = self.run
        held = tuple(torch.zeros_like(part) for part in run.before)
        _, change = jvp(
            self._update,
            (run.x, run.a, run.before, self.extra),
            (x, a, held, dict(extra)),
        )
        return change

    def bend(self, g: State, x: Tensor, a: Tensor, state: State, extra: Weights) -> Pulled:
        """The change of `pull(g)`, g held, along changes of x, a, s(n−1) and further weights."""
        run = self.run

        def pull_at(x: Tensor, a: Tensor, state: State, extra: Weights) -> tuple[Tensor, Tensor, State]:
            _, back = vjp(lambda *point: self._update(*point, extra), x, a, state)
            return back(g)

        _, change = jvp(
            pull_at, (run.x, run.a, run.before, self.extra), (x, a, state, dict(extra))
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

    def __init__(self, run: LayerRun) -> None:
        super().__init__(run)
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
        self.K: list[Tensor] = [table[0] for table in tables]
        self.L: list[list[Tensor | None]] = [list(table[1:]) for table in tables]
        self._K_rows = [table.unbind(0) for table in self.K]
        self._L_rows = [
            [None if part is None else part.unbind(0) for part in table] for table in self.L
        ]

    def pull_step(self, n: int, g: State) -> tuple[Tensor, list[Tensor | None]]:
        delta = self._K_rows[0][n] * g[0].unsqueeze(-2)
        for rows, part in zip(self._K_rows[1:], g[1:], strict=True):
            delta = torch.addcmul(delta, rows[n], part.unsqueeze(-2))
        back: list[Tensor | None] = []
        for column in range(len(g)):
            total: Tensor | None = None
            for table, part in zip(self._L_rows, g, strict=True):
                rows = table[column]
                if rows is not None:
                    total = rows[n] * part if total is None else torch.addcmul(total, rows[n], part)
            back.append(total)
        return delta, back

    def push_step(self, n: int, a: Tensor, state: State) -> list[Tensor]:
        moved = []
        for K_rows, L_table in zip(self._K_rows, self._L_rows, strict=True):
            total = (K_rows[n] * a).sum(-2)
            for rows, part in zip(L_table, state, strict=True):
                if rows is not None:
                    total = torch.addcmul(total, rows[n], part)
            moved.append(total)
        return moved


class MixingLocal(Local):
    """A cell whose `update` mixes units: its Jacobian is applied, never formed."""

    def pull_step(self, n: int, g: State) -> tuple[Tensor, list[Tensor | None]]:
        x, (a, before) = self.run.x[n], self._at(n)
        _, back = vjp(lambda a, s: self._update(x, a, s, self.extra), a, before)
        delta, state = back(g)
        return delta, list(state)

    def push_step(self, n: int, a: Tensor, state: State) -> list[Tensor]:
        x = self.run.x[n]
        _, change = jvp(lambda a, s: self._update(x, a, s, self.extra), self._at(n), (a, state))
        return list(change)

    def _at(self, n: int) -> tuple[Tensor, State]:
        return self.run.a[n], tuple(part[n] for part in self.run.before)


def linearise(run: LayerRun) -> Local:
    return UnitwiseLocal(run) if run.cell.unitwise else MixingLocal(run)
