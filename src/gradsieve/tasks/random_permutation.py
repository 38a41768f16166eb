"""Random permutation: after many random symbols, say the first again.

As in the code of Pascanu, Mikolov & Bengio (2013), after Hochreiter & Schmidhuber (1997): the first
symbol is one of two, the others are any of 98 more, and the symbol after the last is the first.
"""

from __future__ import annotations

from gradsieve.tasks.first_symbol import FirstSymbol, first_of

FIRST, SYMBOLS = 2, 100


def random_permutation(length: int = 100) -> FirstSymbol:
    """Random permutation over `length` steps, 100 classes of which two occur.

    >>> task = random_permutation(length=100)
    >>> u, t = task.sample(4, seed=1)
    >>> u.shape, t.shape, task.constant_guess
    ((100, 4, 100), (4,), 0.5)
    """
    return first_of("random_permutation", length, symbols=SYMBOLS, first=FIRST, others=FIRST)
