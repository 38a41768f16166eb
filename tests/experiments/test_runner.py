"""Runs give the same bits wherever they are computed, and survive being killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rows import run

from gradsieve.experiments.baselines import RandomSkip
from gradsieve.experiments.execute import progress_of
from gradsieve.experiments.runner import run_all
from gradsieve.experiments.store import Store

SHORT = {"where": ("temporal_order", 12), "hidden": 10, "learning_rate": 1e-3, "clip": 1.0}
CONFIGS = [
    run(network, epochs=6, variance=0.1, baseline=baseline, sieve=sieve, **SHORT)
    for sieve, baseline in (
        ("off", None), ("skip", None), ("steer", None), ("hold", None), ("off", RandomSkip(0.5))
    )
    for network in range(2)
]  # fmt: skip


def without_time(store):
    return [
        (config, {name: value for name, value in row.items() if name not in ("seconds", "cpu_ms")})
        for config, row in store.items()
    ]


def computed(folder, **how):
    store = Store(folder / "store.sqlite")
    run_all(CONFIGS, store, folder, **how)
    return without_time(store)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return computed(tmp_path_factory.mktemp("undisturbed"), jobs=1)


def test_two_workers_give_the_bits_of_one(undisturbed, tmp_path):
    assert len(undisturbed) == len(CONFIGS)
    assert computed(tmp_path, jobs=2) == undisturbed


def test_a_study_that_has_its_rows_computes_nothing(tmp_path):
    computed(tmp_path, jobs=2)
    started = time.monotonic()
    computed(tmp_path, jobs=2)
    assert time.monotonic() - started < 0.5


def test_every_run_is_shown_while_it_is_in_flight_however_short_it_is(tmp_path):
    seen = set()
    computed(tmp_path, jobs=2, watch=seen.update)
    assert seen == set(CONFIGS)


def test_a_killed_worker_is_replaced(undisturbed, tmp_path):
    killed = []

    def kill_once(running):
        children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        for child in map(int, children):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if not killed and b"spawn_main" in command:
                os.kill(child, signal.SIGKILL)
                killed.append(child)

    store = Store(tmp_path / "store.sqlite")
    long = [run(7, epochs=400, **SHORT)]
    run_all([*long, *CONFIGS], store, tmp_path, jobs=1, watch=kill_once)
    assert killed
    assert [item for item in without_time(store) if item[0] not in long] == undisturbed


CHILD = """
import json, sys
from pathlib import Path
from gradsieve.experiments.config import RunConfig
from gradsieve.experiments.runner import run_all
from gradsieve.experiments.store import Store, sole_writer

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    configs = [RunConfig.from_json(text) for text in json.loads(sys.argv[2])]
    with sole_writer(folder):
        run_all(configs, Store(folder / "store.sqlite"), folder, jobs=2)
"""


def test_workers_end_with_the_process_that_they_work_for(tmp_path):
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    long = run(where=("temporal_order", 100))
    command = [sys.executable, script, tmp_path / "runs", json.dumps([long.as_json()])]
    child = subprocess.Popen(list(map(str, command)))

    def workers():
        found = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
        return [pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    deadline = time.monotonic() + 60
    while not (at_work := workers()) or not list(tmp_path.glob("runs/*/history.jsonl")):
        assert time.monotonic() < deadline, "no worker has begun"
        time.sleep(0.1)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    while any(Path(f"/proc/{pid}").exists() for pid in at_work):
        assert time.monotonic() < deadline, "a worker goes on for nobody"
        time.sleep(0.1)


def test_fifty_kills_leave_the_store_bit_for_bit_what_it_would_have_been(tmp_path):
    configs = [
        run(network, epochs=300, sieve=sieve, **SHORT)
        for sieve in ("off", "skip", "steer")
        for network in range(3)
    ]
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    script = tmp_path / "child.py"
    script.write_text(CHILD)

    def start(folder):
        texts = json.dumps([config.as_json() for config in configs])
        command = [sys.executable, str(script), str(folder), texts]
        return subprocess.Popen(command, start_new_session=True)

    assert start(calm).wait() == 0
    moments = random.Random(0)
    for _ in range(50):
        child = start(wild)
        try:
            child.wait(timeout=moments.uniform(0.3, 2.5))
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    assert start(wild).wait() == 0
    expected = without_time(Store(calm / "store.sqlite"))
    assert len(expected) == len(configs)
    assert without_time(Store(wild / "store.sqlite")) == expected


def test_progress_is_read_from_a_run_in_flight(tmp_path):
    (tmp_path / "key").mkdir()
    (tmp_path / "key" / "history.jsonl").write_text('{"epoch": 5, "x": 1}\n{"epoch": 10, "x"')
    assert progress_of(tmp_path, "key") == 10
    assert progress_of(tmp_path, "other") == 0


@pytest.mark.xdist_group("ray")
def test_ray_gives_the_same_bits_and_retries_a_killed_worker(undisturbed, tmp_path):
    pytest.importorskip("ray", reason="RAY IS NOT INSTALLED: the Ray runner is NOT TESTED")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    killed = []

    def kill_once(running):
        if not killed:
            for entry in Path("/proc").glob("[0-9]*"):
                try:
                    name = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if name.startswith(b"ray::execute"):
                    os.kill(int(entry.name), signal.SIGKILL)
                    killed.append(entry.name)
                    return

    try:
        store = Store(tmp_path / "store.sqlite")
        long = [run(7, epochs=600, **SHORT)]
        run_all([*long, *CONFIGS], store, tmp_path, ray_address="local", watch=kill_once)
    finally:
        ray.shutdown()
    assert killed, "no Ray worker was caught at work"
    assert [item for item in without_time(store) if item[0] not in long] == undisturbed
