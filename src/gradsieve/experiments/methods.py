"""The arms of the experiments: each name, the sieve it stands for, and how a minibatch is treated.

| name        | what it does                                                                 |
|-------------|------------------------------------------------------------------------------|
| off         | plain SGD with momentum; with `clip`, what most people would do              |
| frozen      | the paper's skip, dS by Lemma 1                                              |
| full        | the paper's skip, dS by the full derivative                                  |
| listing     | Algorithm 1 as printed, which keeps the wrong minibatches                    |
| random      | skips at the rate at which `full` does, whatever the minibatch               |
| regularise  | SGD-CR, the regulariser of Pascanu, Mikolov and Bengio (2013)                |
| select      | trains on the examples whose contribution leads back                         |
| steer       | keeps every update, adds the smallest correction along the gradient of Q     |
| hold        | steers by the Q of the slow gradient, what keeps its direction in time       |
| start       | begins with the gain that `hold` begins with, and does nothing more          |

Each may be clipped, and scaled by RMSprop before that: `rms+clip` is `off` with both. `identity` in
a label: the recurrent weights begin as the identity. `stages`: short sequences come first, of the
same 100 000 updates. `growth`: they grow in ten stages, with a rate as much larger as they are
shorter. `wide`: the shorter they are, the more of them a minibatch has. `bent`: the units begin
bent, by large input weights and biases that differ. `identity` with `growth` and `wide`: the units
begin half as bent, the rate rises over the first hundredth of the epochs and then falls faster than
the length grows, no gradient counts as more than ten usual ones in what they are scaled by, and a
run whose loss has become six times as large goes back.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from gradsieve.errors import InvalidArgument
from gradsieve.experiments.baselines import RandomSkip, Regularised
from gradsieve.experiments.config import RunConfig
from gradsieve.network import SRN
from gradsieve.sieve import Sieve, safe_range
from gradsieve.training.settings import Settings
from gradsieve.training.step import Stepper

VALIDATE_EVERY = 5  # validating 1000 sequences each 50 updates would cost as much as the updates
STOP_AT = 0.999  # so that "above 99 %" is never decided by when a run was stopped
SIZES = (20_000, 1_000, 10_000)  # the paper's training, validation and test sequences
SMALL_SIZES = (2_000, 200, 1_000)  # where drawing the paper's would take longer than learning
SMALL = 100  # epochs
# Which part of the length each stage has, and of the epochs.
STAGES = ((Fraction(1, 5), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 7)))
GROWTH = tuple(
    (Fraction(twentieths, 20), Fraction(fortieths, 40))
    for twentieths, fortieths in (
        (2, 4), (3, 4), (4, 4), (6, 3), (8, 3), (10, 2), (12, 2), (14, 2), (16, 2), (18, 2)
    )
)  # fmt: skip


def sieve_of(config: RunConfig) -> Sieve | None:
    """The sieve that a method's name stands for."""
    option, options = config.option, dict(config.options)
    if config.method in ("off", "start", "random", "regularise"):
        return None
    if config.method in ("frozen", "full", "listing"):
        return Sieve(
            q_range=(option("q_min", -1.0), option("q_max", 1.0)),
            estimator="full" if config.method == "full" else "frozen",
            orientation="listing" if config.method == "listing" else "text",
        )
    if config.method == "select":
        return Sieve(q_range=(option("q_min", -1.0), option("q_max", 1.0)), policy="select")
    if config.method == "steer":
        return Sieve(
            q_range=(option("q_min", -2.0), option("q_max", 1.0)),
            policy="steer",
            steer_rate=option("steer_rate", 0.02),
        )
    if config.method == "hold":
        return Sieve(policy="hold", q_range=safe_range("hold", highest=options.get("q_max")))
    raise InvalidArgument(f"method is {config.method!r}; see gradsieve.experiments.methods")


def stepper_of(config: RunConfig) -> Callable[[SRN, Settings], Stepper]:
    """What treats each minibatch."""
    if config.method == "random":
        return lambda net, settings: RandomSkip(net, settings, config.option("kept", 0.5))
    if config.method == "regularise":
        return lambda net, settings: Regularised(net, settings, config.option("weight", 1.0))
    return Stepper


def settings_of(config: RunConfig) -> Settings:
    """The paper's protocol, but for two savings that every arm shares."""
    return Settings(
        sieve=sieve_of(config),
        learning_rate=config.learning_rate,
        clip=config.clip,
        rms_decay=dict(config.options).get("rms_decay"),
        rms_bound=dict(config.options).get("rms_bound"),
        warmup=dict(config.options).get("warmup"),
        cooldown=dict(config.options).get("cooldown"),
        retreat=dict(config.options).get("retreat"),
        stages=stages_of(config),
        rate_by_length=config.option("growth", 0.0),
        batch_by_length=config.option("wide", 0.0),
        epochs=config.epochs,
        seed=config.network,
        sizes=SIZES if config.epochs >= SMALL else SMALL_SIZES,
        validate_every=min(VALIDATE_EVERY, config.epochs),
        stop_at=STOP_AT,
        probe_every=20,
    )


def stages_of(config: RunConfig) -> tuple[tuple[int, int], ...]:
    """The lengths that a staged run has before its own, and for how many epochs.

    In a small study one that would be too short, in steps or in epochs, is left out.
    """
    options = dict(config.options)
    shares = GROWTH if "growth" in options else STAGES if "stages" in options else ()
    stages = (
        (int(config.length * length), int(config.epochs * epochs)) for length, epochs in shares
    )
    return tuple((length, epochs) for length, epochs in stages if length >= 10 and epochs >= 1)
