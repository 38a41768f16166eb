"""`Sieve`: the settings of the sieve, as one value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from gradsieve.change import WINDOW, Estimator, NormChange
from gradsieve.errors import InvalidArgument
from gradsieve.settings import Settings, setting
from gradsieve.sieve.auto import Auto
from gradsieve.sieve.evidence import Verdict
from gradsieve.sieve.hold import Hold
from gradsieve.sieve.policy import Policy
from gradsieve.sieve.select import Select
from gradsieve.sieve.skip import Skip
from gradsieve.sieve.steer import Steer

PolicyName = Literal["auto", "hold", "steer", "select", "skip"]
OnSkip = Literal["keep", "decay", "reset"]
POLICIES: dict[PolicyName, type[Policy]] = {
    "auto": Auto,
    "hold": Hold,
    "steer": Steer,
    "select": Select,
    "skip": Skip,
}


@dataclass(frozen=True)
class Sieve(Settings):
    """Which updates are judged, by what, and what is done to them.

    >>> Sieve().policy, Sieve("hold").range
    ('auto', (-2.0, 0.5))
    """

    policy: PolicyName = setting("auto", "What is done to updates.", choices=tuple(POLICIES))
    q_range: tuple[float, float] | None = setting(
        None, "Safe range of Q; None is the policy's own.", shape="two numbers", none=True
    )
    estimator: Estimator = setting(
        "full",
        "How dS is predicted: by the whole derivative, by the paper's Lemma 1 (frozen), or measured"
        " by making the update and undoing it.",
        choices=get_args(Estimator),
    )
    max_change: float | None = setting(
        None, "With skip: the largest |dS|/(2S) that is kept, the paper's r0.", above=0, none=True
    )
    horizon: int | None = setting(
        None, "How many steps back is far; None is all of them.", least=1, whole=True, none=True
    )
    window: float = setting(
        WINDOW, "The share of the horizon that slow Q averages, from its far end.", above=0, most=1
    )
    steer_rate: float = setting(
        0.02, "By how much a corrected update turns ln|far gradient| back.", above=0
    )
    limit: float = setting(
        1.0,
        "Longest correction, in lengths of the gradient's step without momentum.",
        above=0,
        infinite=True,
    )
    every: int = setting(1, "Look at one update in this many.", least=1, whole=True)
    on_skip: OnSkip = setting(
        "reset",
        "What becomes of the velocity when an update is left out.",
        choices=get_args(OnSkip),
    )
    stall_after: int = setting(
        50, "Updates left out in a row that are a stall, which is broken.", least=1, whole=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_change is not None and self.policy != "skip":
            raise InvalidArgument(
                f"max_change is {self.max_change}; it belongs to the policy 'skip', "
                f"and policy is {self.policy!r}"
            )
        if self.q_range is None:
            return
        try:
            lowest, highest = (float(end) for end in self.q_range)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"q_range is {self.q_range}; it must be two numbers") from error
        if not lowest <= highest:
            raise InvalidArgument(f"q_range is {self.q_range}; its first value must be the smaller")
        object.__setattr__(self, "q_range", (lowest, highest))

    def at_work(self) -> Policy:
        """The policy with these settings."""
        return POLICIES[self.policy](self)

    @property
    def range(self) -> tuple[float, float]:
        """The safe range of Q: its own, or that of its policy."""
        return self.at_work().q_range

    def judge(self, change: NormChange) -> Verdict:
        """The verdict of Algorithm 1, as corrected, on an update that makes this change."""
        return Skip(self).judge(change.Q, change)
