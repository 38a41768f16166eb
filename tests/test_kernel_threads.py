"""All cores for one network: the same bits for any number of threads, and nobody is in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gradsieve.kernel import NativeFlow, _native, available_isas, limit_threads, predict
from kernel_problems import Problem
from recurrent_problems import GATES, LayerProblem

TESTS = Path(__file__).parent
SOURCES = TESTS.parent / "src" / "gradsieve" / "kernel" / "src"


@pytest.fixture
def threads():
    """Lets that many threads take part, however many CPUs there are, and waits for them."""
    before = _native.thread_limit()
    yield lambda count: _native.limit_threads(count, True)
    limit_threads(before)


def flow_values(problem):
    """Everything that a flow finds."""
    flow = NativeFlow(problem.net, problem.u, problem.t, problem.starts, isa=problem.isa)
    found = [flow.loss, flow.gradient.flat.copy(), flow.states, flow.scaled_deltas, flow.exponents]
    if not flow.per_step:
        horizon = flow.length - 1
        update = problem.direction(1, 1e-3)
        for estimator in ("frozen", "full"):
            norms = flow.norms(update, horizon, estimator)
            found += [list(norms)]
            for of in ("Q", "S"):
                found.append(flow.norm_gradient(horizon, of, estimator).flat.copy())
        found.append(flow.slow_gradient(horizon, horizon * 7 // 10).flat.copy())
    return [*found, predict(problem.net, problem.u, problem.starts, flow.per_step)]


def layer_values(problem):
    states = problem.forward()
    return [*states, *problem.backward(states).values()]


def require_same(expected, found):
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        if one is not None:
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize(
    ("sizes", "options"),
    [  # T, B, I, H, O
        ((70, 64, 3, 64, 4), {}),
        ((60, 33, 2, 100, 3), {"dtype": np.float64}),
        ((250, 15, 6, 71, 4), {"unequal": True}),
        ((300, 130, 1, 29, 2), {"output": "linear", "per_step": True}),
    ],
)
def test_a_flow_has_the_same_bits_for_any_number_of_threads(sizes, options, isa, threads):
    problem = Problem(sizes, isa=isa, **options)
    threads(1)
    shared = _native.shared_calls()
    alone = flow_values(problem)
    assert _native.shared_calls() == shared
    for count in (2, 3):
        threads(count)
        require_same(alone, flow_values(problem))
    assert _native.shared_calls() >= shared + 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(170, 64, 3, 57), (60, 29, 70, 71), (35, 130, 2, 64)])
@pytest.mark.parametrize("cell", GATES)
def test_a_layer_has_the_same_bits_for_any_number_of_threads(cell, sizes, dtype, threads):
    for reverse in (False, True):
        problem = LayerProblem(cell, sizes, dtype, reverse=reverse)
        threads(1)
        alone = layer_values(problem)
        shared = _native.shared_calls()
        for count in (2, 3):
            threads(count)
            require_same(alone, layer_values(problem))
        work = np.prod(sizes[:2]) * GATES[cell] * sizes[3] ** 2
        assert _native.shared_calls() == shared + (4 if work >= 32 << 20 else 0)


def test_small_minibatches_and_unequal_lengths_stay_on_one_thread(threads):
    threads(3)
    shared = _native.shared_calls()
    flow_values(Problem((100, 14, 6, 100, 4)))  # one tile of rows
    flow_values(Problem((10, 100, 2, 20, 4)))  # little work
    layer_values(LayerProblem("lstm", (40, 64, 3, 100), unequal=True))
    assert _native.shared_calls() == shared


def test_two_networks_at_once_compute_what_each_computes_alone(threads):
    problems = [Problem((70, 64, 3, 64, 4), seed=seed) for seed in (1, 2)]
    threads(1)
    alone = [flow_values(problem) for problem in problems]
    threads(2)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            for expected, found in zip(alone, pool.map(flow_values, problems), strict=True):
                require_same(expected, found)


def run(code, **environment):
    path = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {name: value for name, value in os.environ.items() if "_THREADS" not in name}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**own, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


LIMIT = "from gradsieve.kernel import thread_limit; print(thread_limit())"


def test_the_environment_limits_the_threads():
    assert run(LIMIT, GRADSIEVE_THREADS="1").stdout == "1\n"
    assert run(LIMIT, OMP_NUM_THREADS="1").stdout == "1\n"
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert 1 <= int(run(LIMIT, GRADSIEVE_THREADS="999", OMP_NUM_THREADS="1").stdout) <= cpus
    wrong = run(LIMIT, GRADSIEVE_THREADS="many")
    assert wrong.returncode != 0
    assert "GRADSIEVE_THREADS is 'many'; it must be a whole number of at least 1" in wrong.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_that_is_forked_after_the_threads_were_used_has_its_own():
    code = """
import os
from gradsieve.kernel import _native
from kernel_problems import Problem
from test_kernel_threads import flow_values, require_same
_native.limit_threads(2, True)
problem = Problem((70, 64, 3, 64, 4))
expected, shared = flow_values(problem), _native.shared_calls()
assert shared > 0
child = os.fork()
if child == 0:
    require_same(expected, flow_values(problem))
    os._exit(0 if _native.shared_calls() > shared else 7)
assert os.waitpid(child, 0)[1] == 0
require_same(expected, flow_values(problem))
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_the_pool_keeps_its_promises_under_the_thread_sanitizer(tmp_path):
    program = tmp_path / "pool"
    sources = [TESTS / "pool_test.cpp", SOURCES / "pool.cpp"]
    options = ["-std=c++17", "-O1", "-g", "-pthread", "-fsanitize=thread", f"-I{SOURCES}"]
    built = subprocess.run(["c++", *options, *sources, "-o", program], check=False)
    if built.returncode != 0:
        pytest.skip("the compiler has no thread sanitizer")
    environment = {**os.environ, "TSAN_OPTIONS": "die_after_fork=0 halt_on_error=1"}
    done = subprocess.run(
        [program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "all hold\n"), done.stderr
