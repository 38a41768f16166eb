"""How a run trains: every number of the protocol, as one value that can be compared and stored."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gradsieve.errors import InvalidArgument
from gradsieve.flow import Engine
from gradsieve.sieve import Sieve

Measure = Literal["Q", "slow Q"]


@dataclass(frozen=True)
class Settings:
    """The paper's protocol by default; where it is silent, that of the author's published code.

    Attributes:
        sieve: None trains without one.
        learning_rate: α, for the gradient *summed* over the minibatch.
        momentum: μ; the velocity starts from zero in each epoch if `reset_velocity`.
        clip: the largest norm of the summed gradient; None does not clip.
        rms_decay: divides each weight's gradient, before it is clipped, by the root of its mean
            square, whose memory this is (RMSprop; 0.999, say); None does not.
        rms_bound: in that mean no gradient counts as more than so many times as long as usual (10,
            say), so that one that explodes does not decide for long how all others are scaled.
        warmup: the rate rises linearly over this share of the epochs, at the beginning and wherever
            the sequences become longer; None never.
        cooldown: over this last share of the epochs the rate falls linearly to zero; None never.
        retreat: where the median loss since the last validation is more than so many times the
            lowest one over sequences of this length (6, say), the run goes back to how it was then,
            at half the rate for as long as they have this length; None never does.
        stages: pairs (length, epochs): short sequences first. The first so many epochs train on
            sequences of that length, and so on; what is left, on the task's own. Validation and
            test are always of the task itself.
        rate_by_length: in a stage the rate is as many times larger as its sequences are shorter, to
            this power: 1, as what a step does to the last state is summed over the steps in time;
            more, where what is learned over short sequences shall be disturbed little by long ones;
            0, the default, leaves the rate as it is.
        batch_by_length: in a stage a minibatch has as many times more sequences as they are
            shorter, to this power. With 1 every update sees as many steps, and costs as much, as
            any other; with 2 a step that `rate_by_length` makes longer is no noisier; 0, the
            default, leaves the minibatch as it is.
        batch: sequences in a minibatch, drawn with replacement.
        epochs: at most so many epochs of `iterations` minibatches.
        seed: decides the data and the order of the minibatches, not the initial weights.
        sizes: how many training, validation and test sequences are drawn.
        validate_every: epochs from one validation, and record in the history, to the next.
        stop_at: a validation accuracy above this ends the run; None never does.
        patience: epochs without a better validation after which the run ends; None never does.
        measure: the Q that a run without a sieve records: "Q", Eq. 14's, or "slow Q", to compare it
            with one under the policy "hold".
        probe_every: validations from one look inside the network to the next; 0 is never.
        engine: "native" or "reference".
    """

    sieve: Sieve | None = None
    learning_rate: float = 1e-5
    momentum: float = 0.9
    clip: float | None = None
    rms_decay: float | None = None
    rms_bound: float | None = None
    warmup: float | None = None
    cooldown: float | None = None
    retreat: float | None = None
    stages: tuple[tuple[int, int], ...] = ()
    rate_by_length: float = 0.0
    batch_by_length: float = 0.0
    batch: int = 10
    epochs: int = 2000
    iterations: int = 50
    seed: int = 0
    sizes: tuple[int, int, int] = (20_000, 1_000, 10_000)
    validate_every: int = 1
    stop_at: float | None = 0.99
    patience: int | None = None
    reset_velocity: bool = True
    measure: Measure = "Q"
    probe_every: int = 10
    engine: Engine = "native"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        object.__setattr__(self, "stages", tuple(tuple(stage) for stage in self.stages))
        for name in ("batch", "epochs", "iterations", "validate_every"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.patience is not None and self.patience < 1:
            raise InvalidArgument(f"patience is {self.patience}; it must be at least 1, or None")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InvalidArgument(f"learning_rate is {self.learning_rate}; it must be above 0")
        if not 0 <= self.momentum < 1:
            raise InvalidArgument(f"momentum is {self.momentum}; it must lie in [0, 1)")
        if self.clip is not None and not self.clip > 0:
            raise InvalidArgument(f"clip is {self.clip}; it must be above 0, or None")
        if self.rms_decay is not None and not 0 < self.rms_decay < 1:
            raise InvalidArgument(
                f"rms_decay is {self.rms_decay}; it must lie between 0 and 1, or None"
            )
        if self.rms_bound is not None and not self.rms_bound >= 1:
            raise InvalidArgument(f"rms_bound is {self.rms_bound}; it must be at least 1, or None")
        if self.rms_bound is not None and self.rms_decay is None:
            raise InvalidArgument(
                f"rms_bound is {self.rms_bound}, and rms_decay None; it bounds what is scaled by, "
                "so it needs an rms_decay, 0.999 say"
            )
        for name in ("warmup", "cooldown"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise InvalidArgument(
                    f"{name} is {share}; it must lie above 0 and at most at 1, or None"
                )
        if self.retreat is not None and not self.retreat > 1:
            raise InvalidArgument(f"retreat is {self.retreat}; it must be above 1, or None")
        if any(len(stage) != 2 or min(stage) < 1 for stage in self.stages):
            raise InvalidArgument(
                f"stages is {self.stages}; it must be pairs (length, epochs) of numbers above 0"
            )
        if self.stages and sum(epochs for _, epochs in self.stages) >= self.epochs:
            raise InvalidArgument(
                f"stages take {sum(epochs for _, epochs in self.stages)} of {self.epochs} epochs; "
                "some must be left for the task itself"
            )
        for name in ("rate_by_length", "batch_by_length"):
            power = getattr(self, name)
            if not (math.isfinite(power) and power >= 0):
                raise InvalidArgument(f"{name} is {power}; it must be at least 0")
        if self.engine not in ("native", "reference"):
            raise InvalidArgument(f"engine is {self.engine!r}; it may be 'native' or 'reference'")
        if self.measure not in get_args(Measure):
            raise InvalidArgument(f"measure is {self.measure!r}; it may be 'Q' or 'slow Q'")
        if len(self.sizes) != 3 or min(self.sizes) < 1:
            raise InvalidArgument(f"sizes is {self.sizes}; it must be three numbers above 0")
        if self.seed < 0:
            raise InvalidArgument(f"seed is {self.seed}; it must be at least 0")
        if self.sieve is not None and not isinstance(self.sieve, Sieve):
            raise InvalidArgument(f"sieve is {self.sieve!r}; it must be a gs.Sieve, or None")

    def rate_in(self, epoch: int, length: int) -> float:
        """The learning rate of an epoch, counted from 0; `length` is the task's own."""
        rate = self.learning_rate
        stage, since = self._stage(epoch)
        if stage is not None:
            rate *= (length / stage) ** self.rate_by_length
        if self.warmup is not None:
            rate *= min(1.0, (since + 1) / (self.warmup * self.epochs))
        if self.cooldown is not None:
            rate *= min(1.0, (self.epochs - epoch) / (self.cooldown * self.epochs))
        return rate

    def batch_in(self, epoch: int, length: int) -> int:
        """How many sequences a minibatch of an epoch has; `length` is the task's own."""
        stage = self.stage_in(epoch)
        if stage is None:
            return self.batch
        times: float = (length / stage) ** self.batch_by_length
        return max(1, round(self.batch * times))

    def stage_in(self, epoch: int) -> int | None:
        """The length that an epoch, counted from 0, trains on; None is the task's own."""
        return self._stage(epoch)[0]

    def _stage(self, epoch: int) -> tuple[int | None, int]:
        """The length that an epoch trains on, and for how many epochs it has been that."""
        for length, epochs in self.stages:
            if epoch < epochs:
                return length, epoch
            epoch -= epochs
        return None, epoch

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON; lists in place of tuples so that it equals what is read back."""
        plain = dataclasses.asdict(self)
        plain["sizes"] = list(self.sizes)
        plain["stages"] = [list(stage) for stage in self.stages]
        if self.sieve is not None:
            plain["sieve"]["q_range"] = list(self.sieve.q_range)
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Settings:
        sieve = plain.get("sieve")
        if sieve is not None:
            sieve = Sieve(**{**sieve, "q_range": tuple(sieve["q_range"])})
        return cls(**{**plain, "sieve": sieve})
