"""Is it only the start? Recurrent weights that begin orthogonal or as the identity, and `hold`.

A known remedy for vanishing gradients is to begin with recurrent weights that neither shrink nor
stretch. Trains one network (not among the reported ten) from each start for at most 15 000 scaled
and clipped updates, without and with the policy "hold": temporal order of 150 steps, where a guess
gets 25 %, and the adding problem of 100 steps, where it gets 15 %.

Takes some minutes.
"""

import numpy as np

import gradsieve as gs

TASKS = (gs.tasks.temporal_order(length=150), gs.tasks.adding(length=100))
SEED = 1000


def started(task: gs.tasks.Task, start: str) -> gs.SRN:
    net = gs.SRN.random(
        task.inputs, 100, task.outputs, task.output, variance=0.01, seed=SEED,
        recurrent="identity" if start == "identity" else "gaussian",
    )  # fmt: skip
    if start == "orthogonal":
        net.w_rec[:] = np.linalg.qr(np.random.default_rng(SEED).normal(size=(100, 100)))[0]
    return net


def main() -> None:
    print("task            T    start       training           accuracy  updates  slow Q")
    for task in TASKS:
        for start in ("gaussian", "orthogonal", "identity"):
            for name, sieve in (("rms, clip", None), ("hold, rms, clip", gs.Sieve(policy="hold"))):
                run = gs.train(
                    started(task, start), task, sieve, learning_rate=1e-3, rms_decay=0.999,
                    clip=1.0, epochs=300, seed=SEED, validate_every=5, stop_at=0.999,
                    probe_every=0, sizes=(20_000, 1_000, 2_000), measure="slow Q",
                )  # fmt: skip
                print(
                    f"{task.name:14s} {task.length:3d}   {start:11s} {name:16s} "
                    f"{run.test_accuracy:10.1%} {run.updates:8d} {run.history[-1]['Q']:+7.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
