"""Worker processes have one core each, and leave no trace in the process that asked for them."""

import os

import numpy  # noqa: F401  loaded in a worker before it is asked, as a study's code loads it
import pytest
from threadpoolctl import threadpool_info

from gradsieve.experiments.workers import THREADS, worker_processes


def numpy_threads():
    return [library["num_threads"] for library in threadpool_info()]


@pytest.mark.parametrize("before", [None, "2"])
def test_numpy_has_one_thread_in_a_worker_whatever_was_asked_outside(monkeypatch, before):
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
        if before is not None:
            monkeypatch.setenv(name, before)
    with worker_processes(2) as pool:
        found = [pool.submit(numpy_threads).result() for _ in range(2)]
    assert all(threads and set(threads) == {1} for threads in found)
    assert {os.environ.get(name) for name in THREADS} == {before}


def test_the_environment_is_restored_after_an_error(monkeypatch):
    monkeypatch.setenv(THREADS[0], "3")
    with pytest.raises(ZeroDivisionError), worker_processes(1) as pool:
        pool.submit(divmod, 1, 0).result()
    assert os.environ[THREADS[0]] == "3"
