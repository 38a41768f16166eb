"""What one exploded gradient does to RMSprop's scaling, and what a bound on it changes.

Trains one network (not among the reported ten) on the multiplication problem much as the studies'
arm `identity+bent+growth+wide+rms+clip` does, but at a rate just as much larger as sequences are
shorter, without a warm-up and from units twice as bent, without and with `rms_bound`. Once it has
learned to multiply, a sequence whose two values both lie near 1 or -1 can send the states astray,
and the gradient near there explodes.

usual, largest: median and maximum of the norms of the minibatches' gradients.
filled: in which part of the updates the root mean square that gradients are scaled by is more than
    three times that median: an exploded gradient then decides how all others are scaled.

Takes some three minutes.
"""

from functools import partial

import numpy as np

import gradsieve as gs
from gradsieve.training import Settings, run_one
from gradsieve.training.step import Stepper

SEED = 1000
TASK = gs.tasks.multiplication(length=100)
GROWTH = (
    *((length, 200) for length in (10, 15, 20)),
    *((length, 150) for length in (30, 40)),
    *((length, 100) for length in (50, 60, 70, 80, 90)),
)
HALF = 50_000  # the updates that are looked at: the second half


class Watched(Stepper):
    """Writes down how long each gradient is, and how long the scaling thinks it usually is."""

    def __init__(self, lengths: list[tuple[float, float]], net: gs.SRN, settings: Settings) -> None:
        super().__init__(net, settings)
        self.lengths = lengths

    def _propose(self, gradient: np.ndarray) -> np.ndarray:
        seen = 1 - self.scaling.decay**self.scaling.seen
        usual = np.sqrt(self.scaling.mean_square.sum() / seen)
        self.lengths.append((float(np.linalg.norm(gradient)), float(usual)))
        return super()._propose(gradient)


def main() -> None:
    net = gs.SRN.random(
        TASK.inputs, 100, TASK.outputs, TASK.output, seed=SEED,
        recurrent="identity", input_gain=16, bias_spread=0.25,
    )  # fmt: skip
    print("bound  usual  largest  filled  accuracy")
    for bound in (None, 10.0):
        settings = Settings(
            gs.Sieve(policy="hold", q_range=(-2.0, 1.5)), stages=GROWTH, rate_by_length=1.0,
            batch_by_length=1.5, learning_rate=1e-3, rms_decay=0.999, rms_bound=bound, clip=2.0,
            cooldown=1.0, epochs=2000, seed=SEED, validate_every=5, probe_every=0,
        )  # fmt: skip
        watched: list[tuple[float, float]] = []
        run = run_one(net, TASK, settings, stepper=partial(Watched, watched))
        lengths, usual = np.array(watched[HALF:]).T
        median = np.median(lengths)
        print(
            f"{bound or 'none':>5}  {median:5.1f}  {lengths.max():7.0f}  "
            f"{np.mean(usual > 3 * median):6.0%}  {run.test_accuracy:8.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
