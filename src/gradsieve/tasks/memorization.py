"""Noiseless memorization: say a pattern again after a delay (Martens & Sutskever 2011).

As in the code of Pascanu, Mikolov & Bengio (2013): ten of five symbols, a delay of T steps, a cue
with the first of ten steps to say them. A sequence counts as right where all ten symbols are.
"""

from __future__ import annotations

from gradsieve.tasks._recall import Recall, recall


def memorization(length: int = 100) -> Recall:
    """Noiseless memorization over a delay of `length` steps.

    >>> task = memorization(length=100)
    >>> u, t = task.sample(4, seed=1)
    >>> u.shape, t.shape
    ((120, 4, 7), (120, 4))
    """
    return recall("memorization", length, values=5, positions=10, early=False, whole=True)
