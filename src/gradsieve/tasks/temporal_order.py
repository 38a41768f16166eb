"""The temporal order problem: two symbols, each A or B, far apart; say which came first and second.

Hochreiter & Schmidhuber (1997), experiment 6a.
`gradsieve.tasks._symbol_order` describes the sequences.
"""

from __future__ import annotations

from gradsieve.tasks._conventions import Convention
from gradsieve.tasks._symbol_order import SymbolOrder, symbol_order

WINDOWS: dict[Convention, tuple[tuple[int, int], ...]] = {
    "author": ((10, 20), (40, 50)),
    "pascanu": ((10, 20), (50, 60)),
    "hochreiter": ((10, 20), (50, 60)),
}


def temporal_order(length: int = 100, convention: Convention = "author") -> SymbolOrder:
    """The temporal order problem, 4 classes.

    >>> task = temporal_order(length=100)
    >>> u, t = task.sample(10, seed=1)
    >>> u.shape, t.shape, task.outputs, task.constant_guess
    ((100, 10, 6), (10,), 4, 0.25)
    """
    return symbol_order("temporal_order", length, convention, WINDOWS)
