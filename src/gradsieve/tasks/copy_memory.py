"""Copy memory: say ten symbols again after a delay (Arjovsky, Shah & Bengio 2016).

Ten of eight symbols, then a delay of L steps whose last is the cue, then ten steps to say them. A
sequence has L + 20 steps. `accuracy` is the share of the ten symbols that are right.
"""

from __future__ import annotations

from gradsieve.tasks._recall import Recall, recall


def copy_memory(length: int = 100) -> Recall:
    """Copy memory over a delay of `length` steps.

    >>> task = copy_memory(length=100)
    >>> u, t = task.sample(4, seed=1)
    >>> u.shape, t.shape, task.constant_guess
    ((120, 4, 10), (120, 4), 0.125)
    """
    return recall("copy_memory", length, values=8, positions=10, early=True, whole=False)
