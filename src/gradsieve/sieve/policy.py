"""What every policy has: a measure, a safe range of it, and a decision in two questions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal

from gradsieve.sieve.evidence import Decision, Evidence, Need

if TYPE_CHECKING:
    from gradsieve.sieve.settings import Sieve

Measure = Literal["Q", "slow Q"]


class Policy(ABC):
    """A decision over evidence. It holds settings and no state."""

    measure: ClassVar[Measure] = "Q"
    default_range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    compares_gradients: ClassVar[bool] = False  # whether it asks if learning goes on

    def __init__(self, sieve: Sieve) -> None:
        self.sieve = sieve
        self.q_range = self.default_range if sieve.q_range is None else sieve.q_range

    def wanted(self, Q: float) -> int:
        """Which sign of dS leads back: +1 vanished, −1 exploded, 0 in range or Q unknown."""
        lowest, highest = self.q_range
        return 1 if highest < Q else -1 if lowest > Q else 0

    def looks_in(self, evidence: Evidence | None) -> int:
        """In how many steps the policy looks again, after this look; 1 is at the next step."""
        return self.sieve.every

    @abstractmethod
    def need(self, evidence: Evidence) -> Need:
        """What the decision depends on beside Q."""

    @abstractmethod
    def decide(self, evidence: Evidence) -> Decision:
        """The decision, from the evidence that `need` asked for."""
