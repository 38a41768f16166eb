"""One map over run configurations: on this machine's cores, or as tasks of a Ray cluster.

A run's row depends on its configuration alone, so where and in which order runs are computed
changes nothing. Workers only compute; this process alone writes the store.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gradsieve.errors import GradsieveError, needs_extra
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.execute import execute, remove_checkpoint
from gradsieve.experiments.store import Store
from gradsieve.experiments.workers import worker_processes

RETRIES = 3  # of a run by Ray
CONNECT_SECONDS, HEALTH_SECONDS = 10, 60  # how long an address of Ray may take to answer
KILLS = 60  # of one run's worker on this machine: from outside, perhaps, but not for ever
# Called now and then with the runs in flight; it is given each run at least once.
Watch = Callable[[Sequence[RunConfig]], None]
Rows = Iterator[tuple[RunConfig, dict[str, Any]]]


def run_all(
    configs: Sequence[RunConfig],
    store: Store,
    folder: Path,
    jobs: int | None = None,
    ray_address: str | None = None,
    watch: Watch = lambda running: None,
) -> None:
    """Compute every row that the store lacks, and store each as it comes."""
    missing = store.missing(configs)
    rows = (
        _on_this_machine(missing, folder, jobs or os.cpu_count() or 1, watch)
        if ray_address is None
        else _on_ray(missing, folder, ray_address, watch)
    )
    for config, row in rows:
        store.add(config, row)
        remove_checkpoint(folder, config.key)


def _on_this_machine(configs: Sequence[RunConfig], folder: Path, jobs: int, watch: Watch) -> Rows:
    waiting = list(configs)
    attempts: dict[str, int] = {}
    while waiting:
        with worker_processes(jobs) as pool:
            running: dict[Future[dict[str, Any]], RunConfig] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < jobs:
                        config = waiting.pop(0)
                        running[pool.submit(execute, config.as_json(), str(folder))] = config
                    watch(list(running.values()))  # before any has ended: each is seen once
                    done, _ = wait(running, timeout=1.0, return_when=FIRST_COMPLETED)
                    for future in done:
                        row = future.result()
                        yield running.pop(future), row
            except BrokenProcessPool:
                # A worker was killed. The runs in flight go on from their checkpoints.
                for config in running.values():
                    _count_attempt(attempts, config)
                waiting = [*running.values(), *waiting]


def _count_attempt(attempts: dict[str, int], config: RunConfig) -> None:
    attempts[config.key] = attempts.get(config.key, 0) + 1
    if attempts[config.key] >= KILLS:
        raise GradsieveError(f"the worker of {config} was killed {attempts[config.key]} times")


def _on_ray(configs: Sequence[RunConfig], folder: Path, address: str, watch: Watch) -> Rows:
    with needs_extra("--ray", "ray"):
        import ray
    local = address == "local"
    started_here = not ray.is_initialized()
    if started_here:
        _check_answers(address)
        try:
            ray.init(
                address=None if local else address, log_to_driver=False, logging_level=logging.ERROR
            )
        except (ConnectionError, RuntimeError, ValueError) as error:  # none, silent, no address
            raise _no_cluster(address, error) from error
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(execute)
    try:
        running = {remote.remote(config.as_json(), str(folder)): config for config in configs}
        while running:
            watch(list(running.values()))
            done, _ = ray.wait(list(running), timeout=1.0)
            for reference in done:
                row = ray.get(reference)
                yield running.pop(reference), row
    finally:
        if started_here:
            ray.shutdown()


def _check_answers(address: str) -> None:
    """Ray waits for minutes, and silently, for an address where nothing answers; this does not."""
    place = urlsplit(address if "://" in address else f"gcs://{address}")
    try:
        if place.hostname is None or place.port is None:  # auto, local: nothing to ask
            return
        socket.create_connection((place.hostname, place.port), CONNECT_SECONDS).close()
        if place.scheme == "gcs":
            asked = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address"]
            subprocess.run(
                [*asked, address], capture_output=True, check=True, timeout=HEALTH_SECONDS
            )
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error
    except subprocess.SubprocessError as error:
        raise _no_cluster(address, "what listens there does not answer as Ray does") from error


def _no_cluster(address: str, why: object) -> GradsieveError:
    return GradsieveError(
        f"--ray {address}: no Ray cluster answers there; start one with `ray start --head`, or "
        f"say --ray local for one that ends with this study ({str(why)[:200]})"
    )
