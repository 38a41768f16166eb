"""Ready recipes: those that we recommend, and the paper's.

>>> recommended().sieve.policy, paper("frozen").sieve.policy
('auto', 'skip')
"""

from __future__ import annotations

from typing import Literal

from gradsieve.errors import one_of
from gradsieve.recipe import Budget, Curriculum, Optimiser, Recipe, Schedule, Sieve, Start

STAGES = tuple(
    (twentieths / 20, fortieths / 40)
    for twentieths, fortieths in (
        (2, 4), (3, 4), (4, 4), (6, 3), (8, 3), (10, 2), (12, 2), (14, 2), (16, 2), (18, 2)
    )
)  # fmt: skip

SOLVED = 0.998  # by 1000 validation sequences, so that a network above 99 % is not stopped below


def recommended() -> Recipe:
    """For tasks that can be drawn at any length: the same for each of them and every length.

    Short sequences come first, from units that keep their state (identity) and bend (large input
    weights, spread biases). A stage ends once it is learned. Rates fall with the length.
    """
    return Recipe(
        start=Start("identity", input_gain=8.0, bias_spread=0.125),
        optimiser=Optimiser(learning_rate=2e-3, clip=1.0, rms_decay=0.999, rms_bound=10.0),
        sieve=Sieve(),
        schedule=Schedule(warm_up=0.01, cool_down=1.0),
        curriculum=Curriculum(
            STAGES, advance_at=0.99, rate_power=1.3, rate_length=100, batch_power=1.5
        ),
        budget=Budget(validate_every=5, stop_at=SOLVED),
    )


def own_data() -> Recipe:
    """For sequences that are given, and so have one length: no stages.

    The start is orthogonal: on given data it is worth more than the identity. The rate falls as
    1/length beyond 64 steps. docs/tried.md tells how both were chosen.
    """
    return Recipe(
        start=Start("orthogonal"),
        optimiser=Optimiser(learning_rate=4e-3, clip=1.0, rms_decay=0.999),
        sieve=Sieve(),
        schedule=Schedule(cool_down=1.0),
        curriculum=Curriculum(rate_power=1.0, rate_length=64),
        budget=Budget(validate_every=5, stop_at=SOLVED),
    )


def paper(sieve: Literal["off", "frozen", "full"] = "frozen") -> Recipe:
    """Table 1's protocol: without a sieve, or skipping by Lemma 1 or by the full derivative."""
    one_of("sieve", sieve, ("off", "frozen", "full"))
    skip = None if sieve == "off" else Sieve("skip", estimator=sieve)
    return Recipe(sieve=skip)
