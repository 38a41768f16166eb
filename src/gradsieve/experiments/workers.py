"""Processes that compute beside this one, each on one core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def worker_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of new processes in which NumPy has one thread; more would get in each other's way.

    NumPy reads their number as it is loaded, so it must be in the environment before they begin.
    """
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, context, _begin, (os.getpid(),)) as pool:
            try:
                yield pool
            except BaseException:  # nobody waits for them any more
                for process in list((pool._processes or {}).values()):
                    process.terminate()
                raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin(parent: int) -> None:
    """A worker is not asked by Ctrl-C, and ends with the process that it works for.

    That process may be gone already, so it says who it is: a worker that asked for its parent
    would wait for whoever has adopted it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
