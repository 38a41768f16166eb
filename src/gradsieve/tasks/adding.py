"""The adding problem: at the end, say the mean of the two marked values.

author: values in (-1,1), target (a+b)/2. pascanu: values in (0,1), target (a+b)/2. hochreiter:
values in (-1,1), target 1/2 + (a+b)/4. Positions: `gradsieve.tasks._marked_pairs`.
"""

from __future__ import annotations

from gradsieve.tasks._conventions import Convention, checked_convention, checked_length
from gradsieve.tasks._marked_pairs import SHORTEST, MarkedPairs, lost_mark_share, spare_steps
from gradsieve.tasks._task import Array, checked_tolerance

TOLERANCE: dict[Convention, float] = {
    "author": 0.08,
    "pascanu": 0.2,  # his test is error² ≤ 0.04
    "hochreiter": 0.04,
}


def adding(
    length: int = 100, convention: Convention = "author", tolerance: float | None = None
) -> MarkedPairs:
    """The adding problem; `tolerance` replaces the convention's largest correct |error|.

    >>> task = adding(length=100)
    >>> u, t = task.sample(10, seed=1)
    >>> u.shape, t.shape, round(task.constant_guess, 4)
    ((100, 10, 2), (10, 1), 0.1536)
    """
    convention = checked_convention(convention)
    length = checked_length("adding", length, convention, SHORTEST)
    allowed = checked_tolerance(tolerance, TOLERANCE[convention])
    # The target's slope by a+b with both in (-1,1); Pascanu's values span half of that.
    scale = 0.5 if convention == "author" else 0.25
    return MarkedPairs(
        name="adding",
        length=length,
        convention=convention,
        inputs=2,
        outputs=1,
        output="linear",
        constant_guess=_share_near_middle(allowed / scale, lost_mark_share(length, convention)),
        tolerance=allowed,
        exclusive=convention == "hochreiter",
        spare=spare_steps(length, convention),
        lowest_value=0.0 if convention == "pascanu" else -1.0,
        neutral_value=0.0,
        target=_scaled_sum if convention == "hochreiter" else _mean,
    )


def _mean(first: Array, second: Array) -> Array:
    return (first + second) / 2


def _scaled_sum(first: Array, second: Array) -> Array:
    return 0.5 + (first + second) / 4


def _share_near_middle(radius: float, lost: float) -> float:
    """P(|a+b| ≤ radius), a and b uniform in (-1,1); with probability `lost` one of them is 0.

    Both densities are symmetric and fall from the middle, so the middle is the best guess. The
    sum of two has density (2-|s|)/4.
    """
    of_two = min(radius, 2.0) - min(radius, 2.0) ** 2 / 4
    return (1 - lost) * of_two + lost * min(radius, 1.0)
