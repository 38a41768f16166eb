"""Ready recipes: the one that we recommend, and the paper's.

>>> recommended().sieve.policy, paper("frozen").sieve.policy
('auto', 'skip')
"""

from __future__ import annotations

from typing import Literal

from gradsieve.errors import InvalidArgument
from gradsieve.recipe import Budget, Optimiser, Recipe, Schedule, Sieve, Start


def recommended() -> Recipe:
    """The default everywhere: the same for every task and length."""
    return Recipe(
        start=Start("orthogonal"),
        optimiser=Optimiser(learning_rate=1e-3, clip=1.0, rms_decay=0.999),
        sieve=Sieve(),
        schedule=Schedule(cool_down=1.0),
        budget=Budget(validate_every=5),
    )


def paper(sieve: Literal["off", "frozen", "full"] = "frozen") -> Recipe:
    """Table 1's protocol: without a sieve, or skipping by Lemma 1 or by the full derivative."""
    if sieve not in ("off", "frozen", "full"):
        raise InvalidArgument(f"sieve is {sieve!r}; it may be 'off', 'frozen' or 'full'")
    skip = None if sieve == "off" else Sieve("skip", estimator=sieve)
    return Recipe(sieve=skip)
