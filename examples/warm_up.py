"""How many networks the first steps throw into chaos, and what a warm-up of the rate changes.

Trains networks (not among the reported ten) on the multiplication problem over 20 steps in wide
minibatches, much as the first stage of the studies' arm `identity+bent+growth+wide+rms+clip` over
200 steps does, from units twice as bent: at the whole rate from the first update on, and with one
that rises over the first 1000; without and with `hold`.

lost: networks whose loss over the last 1000 of 2000 updates is above a third of a guess's. Where
    states have become chaotic, the gradient explodes and turns with every step in time, and neither
    the loss nor the policy finds a way back.

Takes some four minutes.
"""

import gradsieve as gs

TASK = gs.tasks.multiplication(length=20)
GUESS = 1 / 18  # the mean loss of a guess: half the variance of a product of two uniform values
EPOCHS = 40  # of 50 updates
WARMUP = 0.5
SEEDS = range(1006, 1018)


def loss_after(seed: int, sieve: gs.Sieve | None, warmup: float | None) -> float:
    """The mean loss of the last half of the epochs."""
    net = gs.SRN.random(
        TASK.inputs, 100, TASK.outputs, TASK.output, seed=seed,
        recurrent="identity", input_gain=16, bias_spread=0.25,
    )  # fmt: skip
    run = gs.train(
        net, TASK, sieve, learning_rate=1e-3 * 10**1.3, rms_decay=0.999, rms_bound=10, clip=1.0,
        warmup=warmup, batch=316, epochs=EPOCHS, validate_every=EPOCHS // 2, stop_at=None,
        seed=seed, probe_every=0,
    )  # fmt: skip
    return run.history[-1]["loss"]


def main() -> None:
    print("hold  warm-up  lost")
    for sieve in (None, gs.Sieve(policy="hold", q_range=(-2.0, 1.0))):
        for warmup in (None, WARMUP):
            losses = [loss_after(seed, sieve, warmup) for seed in SEEDS]
            lost = sum(loss > GUESS / 3 for loss in losses)
            held, warmed = ("yes" if option else "no" for option in (sieve, warmup))
            print(f"{held:>4}  {warmed:>7}  {lost} of {len(losses)}", flush=True)


if __name__ == "__main__":
    main()
