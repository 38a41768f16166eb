"""What should become of the velocity when an update is skipped? The measurement behind the default.

Takes about three minutes on two cores. Networks 1000 to 1002 are not among the reported ten.
"""

import gradsieve as gs

TASK = gs.tasks.temporal_order(length=100)
NETWORKS = (1000, 1001, 1002)


def measure(on_skip: str, learning_rate: float, epochs: int = 160) -> list[gs.Run]:
    """The sieve's skip with one choice, without clipping, on each network."""
    return [
        gs.train(
            gs.SRN.random(TASK.inputs, 100, TASK.outputs, TASK.output, variance=0.01, seed=seed),
            TASK,
            sieve=gs.Sieve(on_skip=on_skip),
            learning_rate=learning_rate,
            epochs=epochs,
            seed=seed,
            validate_every=20,
            probe_every=0,
            sizes=(20_000, 1_000, 2_000),
        )
        for seed in NETWORKS
    ]


def main() -> None:
    print("rate   on_skip  kept (each network)   stalls        Q at the end")
    for learning_rate in (1e-4, 1e-3):
        for on_skip in ("keep", "decay", "reset"):
            runs = measure(on_skip, learning_rate)
            kept = " ".join(f"{run.kept:6.1%}" for run in runs)
            stalls = " ".join(f"{run.stalls:3d}" for run in runs)
            ends = " ".join(f"{run.history[-1]['Q']:+5.1f}" for run in runs)
            print(f"{learning_rate:g} {on_skip:>8}  {kept}   {stalls}   {ends}")


if __name__ == "__main__":
    main()
