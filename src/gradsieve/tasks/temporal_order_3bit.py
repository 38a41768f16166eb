"""The 3-bit temporal order problem: three symbols, each A or B; say all three in their order.

Hochreiter & Schmidhuber (1997), experiment 6b.
`gradsieve.tasks._symbol_order` describes the sequences.
"""

from __future__ import annotations

from gradsieve.tasks._conventions import Convention
from gradsieve.tasks._symbol_order import SymbolOrder, symbol_order

WINDOWS: dict[Convention, tuple[tuple[int, int], ...]] = {
    "author": ((10, 20), (30, 40), (60, 70)),
    "pascanu": ((10, 20), (30, 40), (60, 70)),
    "hochreiter": ((10, 20), (33, 43), (66, 76)),
}


def temporal_order_3bit(length: int = 100, convention: Convention = "author") -> SymbolOrder:
    """The 3-bit temporal order problem, 8 classes.

    >>> temporal_order_3bit(length=100).constant_guess
    0.125
    """
    return symbol_order("temporal_order_3bit", length, convention, WINDOWS)
