"""The kernel built for 64-bit ARM and run by QEMU: its results are the NumPy engine's.

It is the baseline that ARM machines run, with NEON by the compiler's own vectors. Without Python:
a small program reads the problem as text and prints the results.
"""

from __future__ import annotations

import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import gradsieve as gs

KERNEL = Path(__file__).parents[1] / "src" / "gradsieve" / "kernel" / "src"
GCC, QEMU = "aarch64-linux-gnu-g++", "qemu-aarch64"
SOURCES = (
    "instruction_set", "recurrent_set", "linearised_set", "arena", "pool", "workspace", "dispatch",
)  # fmt: skip
FLAGS = ("-std=c++17", "-O1", "-pthread", "-DGRADSIEVE_ISA=baseline", "-Wall", "-Wextra", "-Werror",
         "-Wno-psabi", "-Wno-maybe-uninitialized")  # fmt: skip
T, B, HIDDEN = 12, 5, 19

pytestmark = pytest.mark.skipif(
    shutil.which(GCC) is None or shutil.which(QEMU) is None,
    reason=f"NO {GCC} OR {QEMU}: the kernel is not run on ARM",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arm")

    def compiled(name: str) -> Path:
        target = folder / f"{name}.o"
        subprocess.run([GCC, *FLAGS, "-c", KERNEL / f"{name}.cpp", "-o", target], check=True)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, SOURCES))
    source = Path(__file__).parent / "kernel_arm.cpp"
    built = [GCC, *FLAGS, "-static", "-I", KERNEL, source, *objects, "-o", folder / "program"]
    subprocess.run(built, check=True)
    return folder / "program"


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-11), (np.float32, 2e-4)])
def test_a_minibatch_on_arm_gives_what_numpy_gives(program, dtype, close):
    task = gs.tasks.temporal_order(length=T)
    net = gs.SRN.random(task.inputs, HIDDEN, task.outputs, variance=0.05, seed=0, dtype=np.float64)
    net = net.astype(dtype)
    u, t = task.sample(B, seed=1)
    update = np.random.default_rng(2).normal(size=net.flat.size).astype(dtype)
    horizon = T - 1
    sizes = [T, B, task.inputs, HIDDEN, task.outputs, horizon, np.dtype(dtype).itemsize]
    values = [*net.flat, *update, *u.astype(dtype).ravel(), *t]
    given = " ".join([*map(str, sizes), *(float(value).hex() for value in values)])
    ran = subprocess.run([QEMU, program], input=given, capture_output=True, text=True, check=True)
    found = np.array([float.fromhex(line) for line in ran.stdout.split()])

    exact = net.astype(np.float64)
    flow = gs.backpropagate(exact, u, t, engine="reference")
    change = gs.norm_change(flow, flow.gradient.like(update.astype(np.float64)), horizon=horizon)
    steps = horizon // 2
    slow, slope = flow.slow_factor(horizon, steps), flow.slow_gradient(horizon, steps)
    size = net.flat.size
    loss, gradient = found[0], found[1 : 1 + size]
    np.testing.assert_allclose(loss, flow.loss, rtol=close)
    np.testing.assert_allclose(gradient, flow.gradient.flat, rtol=close, atol=close)
    square, product = found[1 + size : 3 + size]  # scaled by a power of two, alike
    np.testing.assert_allclose(product / square, change.relative, rtol=10 * close)
    np.testing.assert_allclose(found[3 + size], slow, rtol=close, atol=close)
    np.testing.assert_allclose(found[4 + size :], slope.flat, rtol=10 * close, atol=close)
