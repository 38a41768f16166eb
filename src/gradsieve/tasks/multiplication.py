"""The multiplication problem: at the end, say the product of the two marked values.

author: values in (-1,1). pascanu and hochreiter: values in (0,1). Positions:
`gradsieve.tasks._marked_pairs`.
"""

from __future__ import annotations

import math

import numpy as np

from gradsieve.tasks._conventions import Convention, checked_convention, checked_length
from gradsieve.tasks._marked_pairs import SHORTEST, MarkedPairs, lost_mark_share, spare_steps
from gradsieve.tasks._task import checked_tolerance

TOLERANCE: dict[Convention, float] = {
    "author": 0.04,
    "pascanu": 0.2,  # his test is error² ≤ 0.04
    "hochreiter": 0.04,
}


def multiplication(
    length: int = 100, convention: Convention = "author", tolerance: float | None = None
) -> MarkedPairs:
    """The multiplication problem; `tolerance` replaces the convention's largest correct |error|.

    >>> round(multiplication(length=100).constant_guess, 4)
    0.1688
    """
    convention = checked_convention(convention)
    length = checked_length("multiplication", length, convention, SHORTEST)
    allowed = checked_tolerance(tolerance, TOLERANCE[convention])
    # A product of values in (-1,1) is most often near 0 on either side: guess 0. One of values in
    # (0,1) is most often just above 0: guess the tolerance, and all of (0, 2 tolerance) is right.
    reach = allowed if convention == "author" else 2 * allowed
    return MarkedPairs(
        name="multiplication",
        length=length,
        convention=convention,
        inputs=2,
        outputs=1,
        output="linear",
        constant_guess=_share_below(reach, lost_mark_share(length, convention)),
        tolerance=allowed,
        exclusive=convention == "hochreiter",
        spare=spare_steps(length, convention),
        lowest_value=-1.0 if convention == "author" else 0.0,
        neutral_value=1.0,
        target=np.multiply,
    )


def _share_below(reach: float, lost: float) -> float:
    """P(|a b| ≤ reach), |a| and |b| uniform in (0,1); with probability `lost` one of them is 1.

    The product has density -ln x, so P = reach - reach ln reach. Both densities never rise with
    x, which is why no interval of the same width holds more.
    """
    if reach >= 1:
        return 1.0
    return (1 - lost) * (reach - reach * math.log(reach)) + lost * reach
