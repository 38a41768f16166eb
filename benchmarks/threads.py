"""All cores for one network against one core: plain steps of the core and of `gst`'s modules.

PyTorch itself has one thread. Ratios of medians over turns; a busy machine makes them worse.
"""

from __future__ import annotations

import time

import torch

from gradsieve.bench.matrix import all_cores, contenders
from gradsieve.bench.timing import Step, take_turns
from gradsieve.bench.workload import GATES, Dimensions, make_workload
from gradsieve.kernel import limit_threads
from gradsieve.text import table

SIZES = ((64, 64, 100), (128, 32, 50), (128, 64, 200), (256, 128, 100), (1024, 32, 50))


def speedup(step: Step) -> str:
    def on(threads: int) -> Step:
        def run() -> None:
            limit_threads(threads)
            step()

        return run

    steps = {"one": on(1), "all": on(all_cores())}
    taken = take_turns(steps, 7, 0.01, clock=time.perf_counter)
    return f"{taken['one'].ratio_to(taken['all']):.2f}"


def main() -> None:
    torch.set_num_threads(1)
    print("| size | core | gst |\n| --- | --- | --- |")
    for cell in GATES:
        for sizes in SIZES:
            size = Dimensions(cell, *sizes)
            steps = contenders(make_workload(size), others=False)
            names = ("core plain", "gst plain")
            found = [speedup(steps[name]) if name in steps else "–" for name in names]
            print(table([size.name, *found], []).splitlines()[0], flush=True)


if __name__ == "__main__":
    main()
