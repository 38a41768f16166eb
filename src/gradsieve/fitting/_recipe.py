"""How a network is trained on a person's data, and what is chosen where nothing is said.

The defaults come from trials on the first four data sets of benchmarks/own_data.py. What mattered
most were recurrent weights that begin as the identity, as in Q. V. Le, N. Jaitly, G. Hinton, *A
Simple Way to Initialize Recurrent Networks of Rectified Linear Units* (2015), here with tanh: a
state then lasts until learning has a use for it. Clipping at 1 and steering with a searched step
trained evenly; skipping starved data sets whose gradient starts out of range, and an adaptive step
size was no better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from gradsieve.data import Sequences
from gradsieve.diagnosis import typical_horizon
from gradsieve.errors import InvalidArgument
from gradsieve.flow import Engine
from gradsieve.network import Recurrent
from gradsieve.sieve import POLICIES, Policy, Sieve, safe_range
from gradsieve.training import Settings

RATES = (1e-3, 3e-3, 1e-2)
NOISES = (0.0, 0.3)
FEW_SERIES, FEW_UNITS, MANY_UNITS = 1000, 32, 64
LEAST_ITERATIONS, MOST_ITERATIONS = 20, 200


@dataclass(frozen=True)
class Recipe:
    """Everything that can be set. None: chosen from the data.

    Attributes:
        hidden: units of the network; 32, or 64 from a thousand training series on.
        learning_rate: for the gradient summed over a minibatch; None searches.
        rates: what the search tries.
        noise: spread of noise on copies of the training sequences, in units of each input's
            spread; None searches.
        noises: what the search tries.
        initial: recurrent weights that begin as the "identity" or "gaussian" of radius about 1;
            None searches.
        networks: initial networks of a kind that the search tries with each rate and noise.
        search_updates: minibatches of each trial, about.
        finalists: trials that are trained to the end, of which the best is taken.
        sieve: the policy, or "off".
        q_range: the sieve's safe range of Q; None is its policy's own.
        clip: largest norm of a gradient, mean over steps where there is a target at each.
        epochs: at most so many; `patience` of them without improvement end a run.
        iterations: minibatches in an epoch; None sees about all training series once.
        variance: of the gaussian weights; None makes the spectral radius about 1.
        seed: decides split, initial weights and order.
    """

    hidden: int | None = None
    learning_rate: float | None = None
    rates: tuple[float, ...] = RATES
    noise: float | None = None
    noises: tuple[float, ...] = NOISES
    initial: Recurrent | None = None
    networks: int = 1
    search_updates: int = 800
    finalists: int = 3
    sieve: Policy | Literal["off"] = "steer"
    q_range: tuple[float, float] | None = None
    clip: float | None = 1.0
    momentum: float = 0.9
    batch: int = 10
    epochs: int = 400
    patience: int = 100
    iterations: int | None = None
    variance: float | None = None
    seed: int = 0
    engine: Engine = "native"

    def __post_init__(self) -> None:
        for name in ("networks", "search_updates", "finalists", "epochs", "patience", "batch"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("hidden", "iterations"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidArgument(f"{name} is {value}; it must be at least 1, or None")
        if self.sieve not in ("off", *POLICIES):
            choices = ", ".join(map(repr, ("off", *POLICIES)))
            raise InvalidArgument(f"sieve is {self.sieve!r}; it may be {choices}")
        for name in ("rates", "noises"):
            if not getattr(self, name):
                raise InvalidArgument(f"{name} is empty; there must be at least one to try")
        for noise in (*self.noises, *(() if self.noise is None else (self.noise,))):
            if not (math.isfinite(noise) and noise >= 0):
                raise InvalidArgument(f"noise is {noise}; it must be a number of at least 0")
        if self.initial not in (None, *get_args(Recurrent)):
            raise InvalidArgument(
                f"initial is {self.initial!r}; it may be 'identity', 'gaussian' or None"
            )
        if self.seed < 0:
            raise InvalidArgument(f"seed is {self.seed}; it must be at least 0")

    @property
    def trials(self) -> int:
        """How many runs the search makes."""
        rates = 1 if self.learning_rate is not None else len(self.rates)
        noises = 1 if self.noise is not None else len(self.noises)
        return self.networks * len(self.initials) * rates * noises

    @property
    def initials(self) -> tuple[Recurrent, ...]:
        return get_args(Recurrent) if self.initial is None else (self.initial,)

    def units(self, train: Sequences) -> int:
        if self.hidden is not None:
            return self.hidden
        return FEW_UNITS if train.count < FEW_SERIES else MANY_UNITS

    def initial_variance(self, train: Sequences) -> float:
        return self.variance if self.variance is not None else 1 / self.units(train)

    def the_sieve(self, train: Sequences) -> Sieve | None:
        """None where it is off, or sequences are of one step and have nothing far."""
        horizon = typical_horizon(train.lengths)
        if self.sieve == "off" or horizon < 1:
            return None
        return Sieve(
            q_range=self.q_range or safe_range(self.sieve), policy=self.sieve, horizon=horizon
        )

    def iterations_of(self, train: Sequences) -> int:
        if self.iterations is not None:
            return self.iterations
        seen_once = math.ceil(train.count / self.batch)
        return min(max(seen_once, LEAST_ITERATIONS), MOST_ITERATIONS)

    def search_epochs(self, train: Sequences) -> int:
        return math.ceil(self.search_updates / self.iterations_of(train))

    def settings(self, train: Sequences, learning_rate: float, epochs: int) -> Settings:
        """The trainer's settings. With a target at every step, its sum becomes a mean over them."""
        targets = float(train.lengths.mean()) if train.per_step else 1.0
        return Settings(
            sieve=self.the_sieve(train),
            learning_rate=learning_rate / targets,
            momentum=self.momentum,
            clip=None if self.clip is None else self.clip * targets,
            batch=self.batch,
            epochs=epochs,
            iterations=self.iterations_of(train),
            seed=self.seed,
            stop_at=None,
            patience=self.patience,
            engine=self.engine,
        )
