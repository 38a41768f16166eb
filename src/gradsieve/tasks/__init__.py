"""Tasks: problems whose answer lies far back in the sequence.

>>> from gradsieve import tasks
>>> task = tasks.temporal_order(length=100)
>>> u, t = task.sample(10, seed=1)
>>> u.shape, t.shape
((100, 10, 6), (10,))

The paper's four come in three conventions, and a score can only be compared within one:

>>> for convention in tasks.CONVENTIONS:
...     task = tasks.by_name("adding", length=100, convention=convention)
...     print(f"{convention}: ±{task.tolerance}, a constant guess scores {task.constant_guess:.1%}")
author: ±0.08, a constant guess scores 15.4%
pascanu: ±0.2, a constant guess scores 64.0%
hochreiter: ±0.04, a constant guess scores 15.4%
"""

from __future__ import annotations

from gradsieve.errors import InvalidArgument, one_of
from gradsieve.tasks._conventions import CONVENTIONS, Convention
from gradsieve.tasks._task import Task
from gradsieve.tasks.adding import adding
from gradsieve.tasks.copy_memory import copy_memory
from gradsieve.tasks.first_symbol import first_symbol
from gradsieve.tasks.memorization import memorization
from gradsieve.tasks.multiplication import multiplication
from gradsieve.tasks.random_permutation import random_permutation
from gradsieve.tasks.temporal_order import temporal_order
from gradsieve.tasks.temporal_order_3bit import temporal_order_3bit

__all__ = [
    "adding",
    "multiplication",
    "temporal_order",
    "temporal_order_3bit",
    "copy_memory",
    "first_symbol",
    "memorization",
    "random_permutation",
    "by_name",
    "NAMES",
    "PAPERS",
    "CONVENTIONS",
    "Convention",
    "Task",
]

_REGRESSION = {"adding": adding, "multiplication": multiplication}
_CLASSIFICATION = {"temporal_order": temporal_order, "temporal_order_3bit": temporal_order_3bit}
_OTHERS = {
    "copy_memory": copy_memory,
    "first_symbol": first_symbol,
    "memorization": memorization,
    "random_permutation": random_permutation,
}
PAPERS: tuple[str, ...] = (*_REGRESSION, *_CLASSIFICATION)  # the paper's, in three conventions
NAMES: tuple[str, ...] = (*PAPERS, *_OTHERS)


def by_name(
    name: str,
    length: int = 100,
    convention: Convention = "author",
    tolerance: float | None = None,
) -> Task:
    """The task of this name; a task's own name, length, convention and tolerance give it back."""
    if name in _REGRESSION:
        return _REGRESSION[name](length, convention, tolerance)
    one_of("task", name, NAMES)
    if tolerance is not None:
        raise InvalidArgument(
            f"tolerance is {tolerance}; {name} has classes, so it must be left out (None)"
        )
    if name in _CLASSIFICATION:
        return _CLASSIFICATION[name](length, convention)
    if convention != "author":
        raise InvalidArgument(
            f"convention is {convention!r}; {name} has one form only, so it must be left out"
        )
    return _OTHERS[name](length)
