"""Policy "hold": steer by slow Q, the part of the gradient that keeps its direction in time.

Eq. 14's Q also counts deltas that turn from step to step and cancel in the sum over time. Slow Q
does not (docs/theory.md, "The slow gradient").
"""

from __future__ import annotations

from gradsieve.sieve.steer import Steer


class Hold(Steer):
    """Corrects by slow Q, at every look."""

    measure = "slow Q"
    default_range = (-2.0, 0.5)
