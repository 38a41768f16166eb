"""Whether ten networks were lucky or not: the same arm on sixteen others.

Trains networks that nothing was chosen by on the multiplication problem over 200 steps, as the
studies' arm `hold+identity+bent+growth+wide+rms+clip` does, on all cores of this machine.

Takes some twenty minutes on two cores; a number in the command line asks for the first so many.
"""

import os
import sys

from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.methods import settings_of
from gradsieve.experiments.search import WIDE_IDENTITY
from gradsieve.experiments.workers import worker_processes
from gradsieve.training import run_one

NETWORKS = range(1016, 1032)


def accuracy_of(network: int) -> float:
    config = RunConfig(
        "multiplication", 200, "hold", network, 1e-3, clip=1.0, options=WIDE_IDENTITY
    )
    return run_one(config.initial_network(), config.problem(), settings_of(config)).test_accuracy


def main(count: int) -> None:
    networks = NETWORKS[:count]
    accuracies = []
    with worker_processes(os.cpu_count() or 1) as pool:
        for network, accuracy in zip(networks, pool.map(accuracy_of, networks), strict=True):
            accuracies.append(accuracy)
            print(f"network {network}: {accuracy:.2%}", flush=True)
    above = sum(accuracy > 0.99 for accuracy in accuracies)
    print(f"above 99 %: {above} of {len(accuracies)}, the lowest at {min(accuracies):.2%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else len(NETWORKS))
