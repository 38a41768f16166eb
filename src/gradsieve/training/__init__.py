"""Training: propose, judge, keep or skip; epochs, validation, checkpoints.

`train` is the way in. `step` has Algorithm 1, `run` the loop around it, `settings` the protocol,
`data` the sequences, `record` the run's folder, `probe` the looks inside.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, overload

from gradsieve.network import SRN
from gradsieve.sieve import Sieve
from gradsieve.training.data import Data, Sequences, Task
from gradsieve.training.run import Run, run_one
from gradsieve.training.settings import Settings

__all__ = ["Data", "Run", "Sequences", "Settings", "Task", "run_one", "train"]


@overload
def train(net: SRN, task: Task, sieve: Sieve | None = None, **settings: Any) -> Run: ...
@overload
def train(
    net: Sequence[SRN], task: Task, sieve: Sieve | None = None, **settings: Any
) -> list[Run]: ...
def train(
    net: SRN | Sequence[SRN],
    task: Task,
    sieve: Sieve | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    on_record: Callable[..., None] | None = None,
    jobs: int | None = None,
    **settings: Any,
) -> Run | list[Run]:
    """Train a network, or several at once, on a task.

    Args:
        net: a network, left as it is; or several, trained side by side, one thread each.
        task: what to learn: one of `gradsieve.tasks`, or your own (`gradsieve.training.Task`).
        sieve: None trains without one.
        folder: where the run is recorded and goes on from; several networks get `net-0`, `net-1`…
        on_record: called with each record of the history (for several networks: index, record).
        jobs: how many networks train at a time; this machine's cores by default.
        **settings: learning_rate, momentum, clip, batch, epochs, iterations, seed and the rest of
            `gradsieve.training.Settings`. Network i of several uses seed + i.

    Ctrl-C ends the training early, with what it has: `run.stopped` is then "interrupted".
    """
    asked = Settings(sieve=sieve, **settings)
    where = Path(folder) if folder is not None else None
    if isinstance(net, SRN):
        return run_one(net, task, asked, where, on_record=on_record)
    stop = threading.Event()

    def one(index: int) -> Run:
        return run_one(
            net[index],
            task,
            Settings(sieve=sieve, **{**settings, "seed": asked.seed + index}),
            where / f"net-{index}" if where is not None else None,
            {"network": index},
            on_record=None if on_record is None else lambda record: on_record(index, record),
            stop=stop,
        )

    with ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        futures = [pool.submit(one, index) for index in range(len(net))]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            stop.set()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise
