"""Algorithm 1: which updates hold the far gradient in its safe range.

The listing in the paper contradicts the text around it (docs/theory.md). Here the text
is what counts: where the gradient has *vanished* (Q above its range) an update is kept when the
norm will grow (dS > 0), where it has *exploded* (Q below) when it will fall, and in range always.
`orientation="listing"` is the opposite, as printed, for the ablation only. `max_change` is the
paper's r₀, a bound on |dS|/(2S).

A `Sieve` is settings and a truth table: it holds no state and touches no weights. The loop in
`gradsieve.training` and the optimizer in `gradsieve.torch` act on its verdicts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from gradsieve.change import WINDOW
from gradsieve.errors import InvalidArgument
from gradsieve.flow import Estimator

Policy = Literal["skip", "select", "steer", "hold"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Orientation = Literal["text", "listing"]
OnSkip = Literal["keep", "decay", "reset"]

IN_RANGE = "in range"
NOT_FINITE = "not finite"
TOO_LARGE = "change too large"
VANISHED_GROWS = "vanished, grows back"
VANISHED_FALLS = "vanished, would fall further"
EXPLODED_FALLS = "exploded, falls back"
EXPLODED_GROWS = "exploded, would grow further"
STALL_BROKEN = "stall broken"


OWN_RANGE: Any = None  # of Q: that of the policy


def safe_range(
    policy: str, lowest: float | None = None, highest: float | None = None
) -> tuple[float, float]:
    """The ends of Q's safe range that are given, and a policy's own in place of the others."""
    default = (-2.0, 0.5) if policy == "hold" else (-1.0, 1.0)
    return (
        default[0] if lowest is None else lowest,
        default[1] if highest is None else highest,
    )


class Change(Protocol):
    """What a verdict needs to know; `NormChange` is one."""

    @property
    def Q(self) -> float: ...
    @property
    def dS(self) -> float: ...
    @property
    def relative(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an update is kept, why, and the numbers that decided it."""

    keep: bool
    reason: str
    Q: float = math.nan
    dS: float = math.nan
    relative: float = math.nan


@dataclass(frozen=True)
class Sieve:
    """Settings of the sieve.

    Attributes:
        q_range: the safe range of Q: by default (−1, 1), the paper's, or for "hold", whose Q is
            that of the slow gradient, (−2, 0.5).
        max_change: r₀, the largest relative change |dS|/(2S) of the far norm that is kept.
        estimator: how dS is predicted: "full", or "frozen" as in the paper.
        policy: "skip" whole minibatches (the paper), "select" the examples whose contribution
            pushes the right way, "steer": keep every update and add the smallest correction
            along ∂Q/∂w that turns Q back, or "hold": steer by the Q of the slow gradient
            (`gs.slow_factor`), which is what we recommend, with clipping.
        horizon: h; T−1 by default.
        on_skip: what becomes of the velocity when an update is skipped: "keep" it as it was,
            "decay" it by the momentum, or "reset" it to zero, so that the next verdict is on its
            minibatch alone. Measured on temporal order, T = 100, rate 1e-4, three networks, 8000
            updates: kept 63 %, 62 %, 88 % of the updates, and Q ended at 0.1 … 6.6,
            −0.2 … 32.2, −0.3 … 0.1 (`python examples/velocity_on_skip.py`).
        stall_after: after so many skips in a row the run says that it has stalled, forgets its
            velocity and takes the next plain update.
        steer_rate: by how much a steered update turns ln‖δ(T−h)‖ − ln‖δ(T)‖ back, at least.
        window: which part of the horizon, from its far end, the slow gradient averages ("hold").
        orientation: "text", or "listing" for Algorithm 1 as printed.
    """

    q_range: tuple[float, float] = OWN_RANGE
    max_change: float | None = None
    estimator: Estimator = "full"
    policy: Policy = "skip"
    horizon: int | None = None
    on_skip: OnSkip = "reset"
    stall_after: int = 50
    steer_rate: float = 0.02
    window: float = WINDOW
    orientation: Orientation = "text"

    def __post_init__(self) -> None:
        if self.q_range is OWN_RANGE:
            object.__setattr__(self, "q_range", safe_range(self.policy))
        if len(self.q_range) != 2:
            raise InvalidArgument(f"q_range is {self.q_range}; it must be two numbers")
        lowest, highest = self.q_range
        if not lowest <= highest:
            raise InvalidArgument(f"q_range is {self.q_range}; its first value must be the smaller")
        object.__setattr__(self, "q_range", (float(lowest), float(highest)))
        if self.max_change is not None and not self.max_change > 0:
            raise InvalidArgument(f"max_change is {self.max_change}; it must be above 0, or None")
        if self.stall_after < 1:
            raise InvalidArgument(f"stall_after is {self.stall_after}; it must be at least 1")
        if not self.steer_rate > 0:
            raise InvalidArgument(f"steer_rate is {self.steer_rate}; it must be above 0")
        if not 0 < self.window <= 1:
            raise InvalidArgument(f"window is {self.window}; it must lie above 0 and at most at 1")
        if self.horizon is not None and self.horizon < 1:
            raise InvalidArgument(f"horizon is {self.horizon}; it must be at least 1, or None")
        for name, allowed in (
            ("estimator", ("full", "frozen")),
            ("policy", POLICIES),
            ("on_skip", ("keep", "decay", "reset")),
            ("orientation", ("text", "listing")),
        ):
            value = getattr(self, name)
            if value not in allowed:
                choices = ", ".join(map(repr, allowed))
                raise InvalidArgument(f"{name} is {value!r}; it may be {choices}")

    def needs_change(self, Q: float) -> bool:
        """Whether the verdict at this Q depends on dS, which costs more than Q."""
        return self.max_change is not None or self.wanted_sign(Q) != 0

    def wanted_sign(self, Q: float) -> int:
        """Which sign of dS leads back: +1 vanished, −1 exploded, 0 in range (or Q unknown)."""
        lowest, highest = self.q_range
        sign = 1 if highest < Q else -1 if lowest > Q else 0
        return sign if self.orientation == "text" else -sign

    def judge(self, change: Change) -> Verdict:
        """The verdict of Algorithm 1, as corrected, on one minibatch."""
        keep, reason = self._decide(change)
        return Verdict(keep, reason, change.Q, change.dS, change.relative)

    def _decide(self, change: Change) -> tuple[bool, str]:
        Q, dS, relative = change.Q, change.dS, change.relative
        if math.isnan(Q) or (self.needs_change(Q) and math.isnan(dS)):
            return False, NOT_FINITE
        if self.max_change is not None and abs(relative) > self.max_change:
            return False, TOO_LARGE
        wanted = self.wanted_sign(Q)
        if wanted == 0:
            return True, IN_RANGE
        keep = dS * wanted > 0
        if self.q_range[1] < Q:
            return keep, VANISHED_GROWS if dS > 0 else VANISHED_FALLS
        return keep, EXPLODED_FALLS if dS < 0 else EXPLODED_GROWS
