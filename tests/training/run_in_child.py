"""A training run in a process of its own, to be killed, interrupted or starved of disk.

Usage: python run_in_child.py FOLDER [CHECKPOINT_SECONDS [LARGEST_FILE]]. It says `ready` once it
begins and then the number of each epoch that it has recorded.
"""

import resource
import sys
from pathlib import Path

import gradsieve as gs
from gradsieve.training import Job, run_one
from gradsieve.training import run as loop

TASK = gs.tasks.temporal_order(length=20)
RECIPE = gs.Recipe().replaced(
    sieve=gs.Sieve("skip", (-0.2, 0.2), stall_after=6),
    learning_rate=3e-3,
    clip=1.0,
    epochs=90,
    iterations=20,
    sizes=(100, 30, 40),
    reset_velocity=False,
    probe_every=3,
    stop_at=None,
)
JOB = Job(TASK, RECIPE, seed=4)


def initial_network():
    return gs.SRN.random(TASK.inputs, 20, TASK.outputs, output=TASK.output, variance=0.06, seed=2)


def main(folder, checkpoint_seconds="0", largest_file=None):
    loop.CHECKPOINT_SECONDS = float(checkpoint_seconds)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest_file), int(largest_file)))
    print("ready", flush=True)
    try:
        run = run_one(
            initial_network(),
            JOB,
            Path(folder),
            on_record=lambda record: print(record["epoch"], flush=True),
        )
    except gs.GradsieveError as error:
        print(f"error: {error}", flush=True)
        sys.exit(2)
    print(run.stopped, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
