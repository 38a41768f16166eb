"""Why a Q in range is not enough: how much of the gradient is signal, and how coherent it is.

Trains two networks (not among the reported ten) for 4000 clipped updates, without a sieve, steered
by Q and held by the slow gradient's Q, and asks of each:

- signal: the cosine between the gradients of two disjoint sets of 2000 sequences. Near 1 the
  gradient says something about the task; near 0 it is noise.
- coherence: how much of δ survives when it is averaged over the far fifth of the sequence. Slow
  modes keep their direction (near 1), rotating ones cancel (near 0).
- top tenth: which part of Σ ‖δ(1)‖ a tenth of the sequences hold. Near 1 a mean norm is that of a
  few of them.

Takes about a minute.
"""

import numpy as np

import gradsieve as gs

TASK = gs.tasks.temporal_order(length=100)
SEQUENCES, PART = 2000, 100


def mean_gradient(net: gs.SRN, seed: int) -> np.ndarray:
    u, t = TASK.sample(SEQUENCES, seed=seed)
    parts = (slice(start, start + PART) for start in range(0, SEQUENCES, PART))
    return sum(gs.backpropagate(net, u[:, part], t[part]).gradient.w_rec.ravel() for part in parts)


def signal(net: gs.SRN) -> float:
    one, other = mean_gradient(net, seed=77), mean_gradient(net, seed=78)
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def coherence(net: gs.SRN) -> float:
    far = gs.backpropagate(net, *TASK.sample(PART, seed=5)).deltas[: TASK.length // 5]
    return float(
        np.linalg.norm(far.mean(axis=0), axis=1).mean() / np.linalg.norm(far, axis=2).mean()
    )


def top_tenth(net: gs.SRN) -> float:
    norms = np.linalg.norm(gs.backpropagate(net, *TASK.sample(PART, seed=5)).deltas[0], axis=1)
    return float(np.sort(norms)[-PART // 10 :].sum() / norms.sum())


def main() -> None:
    print("network  training          accuracy      Q  signal  coherence  top tenth")
    for seed in (1000, 1001):
        start = gs.SRN.random(TASK.inputs, 100, TASK.outputs, TASK.output, variance=0.01, seed=seed)
        for name, sieve in (
            ("clip", None),
            ("clip and steer", gs.Sieve((-2.0, 0.5), policy="steer")),
            ("clip and hold", gs.Sieve(policy="hold")),
        ):
            run = gs.train(
                start, TASK, sieve=sieve, learning_rate=1e-3, clip=1.0, epochs=80, seed=seed,
                validate_every=20, stop_at=None, probe_every=0, sizes=(20_000, 1_000, 1_000),
            )  # fmt: skip
            Q = gs.q_factor(gs.backpropagate(run.final, *TASK.sample(PART, seed=5)))
            print(
                f"{seed:7d}  {name:16s} {run.history[-1]['accuracy']:9.1%} {Q:+6.1f} "
                f"{signal(run.final):+7.2f} {coherence(run.final):10.2f} "
                f"{top_tenth(run.final):10.2f}"
            )


if __name__ == "__main__":
    main()
