"""Why clipped steps go nowhere once the far gradient is alive, and what scaling them changes.

Trains two networks (not among the reported ten) on the adding problem with the policy "hold", for
10 000 clipped updates, without and with RMSprop's scaling, and asks of each:

- loss: where a constant guess stands at about 0.083.
- top: which part of the squared length of a minibatch's gradient lies along one direction, the same
  for all of 100 minibatches. Near 1 a clipped step is spent on that direction alone.
- biases: which part lies in the biases of the hidden units, 100 of 10 401 weights.

Takes about a minute.
"""

import numpy as np

import gradsieve as gs

TASK = gs.tasks.adding(length=100)
MINIBATCHES = 100


def gradients(net: gs.SRN) -> list[gs.SRN]:
    flows = (gs.backpropagate(net, *TASK.sample(10, seed=seed)) for seed in range(MINIBATCHES))
    return [flow.gradient for flow in flows]


def share_of_top_direction(net: gs.SRN) -> float:
    unit = np.array([one.flat / np.linalg.norm(one.flat) for one in gradients(net)])
    return float(np.linalg.norm(unit, ord=2) ** 2 / MINIBATCHES)


def share_of_biases(net: gs.SRN) -> float:
    return float(np.mean([(one.b**2).sum() / (one.flat**2).sum() for one in gradients(net)]))


def main() -> None:
    print("network  training           loss   top  biases")
    for seed in (1000, 1001):
        start = gs.SRN.random(TASK.inputs, 100, TASK.outputs, TASK.output, variance=0.01, seed=seed)
        for name, scaling in (("hold, clip", {}), ("hold, rms, clip", {"rms_decay": 0.999})):
            run = gs.train(
                start, TASK, gs.Sieve(policy="hold"), learning_rate=1e-3, clip=1.0, epochs=200,
                seed=seed, validate_every=20, stop_at=None, probe_every=0,
                sizes=(20_000, 1_000, 1_000), **scaling,
            )  # fmt: skip
            print(
                f"{seed:7d}  {name:16s} {run.history[-1]['validation_loss']:6.3f} "
                f"{share_of_top_direction(run.final):5.2f} {share_of_biases(run.final):7.2f}"
            )


if __name__ == "__main__":
    main()
