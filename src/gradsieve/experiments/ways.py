"""The recipes that studies compare, and their budget.

Every way has the paper's budget of 2000 epochs of 50 minibatches of 10, but for two savings that
all arms share: the network is validated in every fifth epoch, and a run ends above 99.9 %.
"""

from __future__ import annotations

import math

from gradsieve.recipe import Recipe, Sieve
from gradsieve.recipes import STAGES, paper

EPOCHS = 2000
VALIDATE_EVERY = 5  # validating 1000 sequences each 50 updates would cost as much as the updates
STOP_AT = 0.999  # so that "above 99 %" is never decided by when a run was stopped
SMALL_SIZES = (2_000, 200, 1_000)  # where drawing the paper's would take longer than learning
SMALL = 100  # epochs

# Stages of a curriculum: shares of the length, and of the epochs.
COARSE = ((1 / 5, 1 / 10), (1 / 2, 1 / 7))
FINE = STAGES


def budgeted(recipe: Recipe, epochs: int) -> Recipe:
    """The recipe with the studies' budget of `epochs` epochs; a small budget draws less data."""
    return recipe.replaced(
        epochs=epochs,
        sizes=recipe.budget.sizes if epochs >= SMALL else SMALL_SIZES,
        validate_every=min(VALIDATE_EVERY, epochs),
        stop_at=STOP_AT,
        probe_every=20,
    )


def held(recipe: Recipe, highest: float = 0.5) -> Recipe:
    """The recipe with the policy "hold", its corrections not bounded."""
    return recipe.replaced(sieve=Sieve("hold", (-2.0, highest), limit=math.inf))


def skipping(recipe: Recipe, estimator: str) -> Recipe:
    """The recipe with the paper's skip."""
    return recipe.replaced(sieve=Sieve("skip", (-1.0, 1.0), estimator))  # type: ignore[arg-type]


SGD = paper("off")
CLIPPED = SGD.replaced(learning_rate=1e-3, clip=1.0)
SCALED = CLIPPED.replaced(rms_decay=0.999, cool_down=1.0)
IDENTITY = SCALED.replaced(recurrent="identity")
ORTHOGONAL = SCALED.replaced(recurrent="orthogonal")
CURRICULUM = SCALED.replaced(stages=COARSE)
LARGE_INPUT = CURRICULUM.replaced(input_gain=16.0, bias_spread=0.5)
FINE_CURRICULUM = SCALED.replaced(stages=FINE, rate_power=1.0, input_gain=16.0, bias_spread=0.25)
LARGER_MINIBATCHES = FINE_CURRICULUM.replaced(batch_power=1.5)
FINE_IDENTITY = LARGER_MINIBATCHES.replaced(
    recurrent="identity", input_gain=8.0, bias_spread=0.125, rate_power=1.3,
    rms_bound=10.0, roll_back=6.0, warm_up=0.01,
)  # fmt: skip
