"""The kernel built otherwise: its results are the NumPy engine's, and other compilers take it.

For 64-bit ARM it is run by QEMU: the baseline that ARM machines run, with NEON by the compiler's
own vectors. Without vector extensions it is what a compiler like MSVC builds. Without Python: a
small program reads the problem as text and prints the results.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import gradsieve as gs

KERNEL = Path(__file__).parents[1] / "src" / "gradsieve" / "kernel" / "src"
ONCE_A_SET = ("instruction_set", "recurrent_set", "linearised_set")
WITHOUT_ATOMIC = (*ONCE_A_SET, "dispatch")  # GCC's <atomic> cannot be read as MSVC would
SOURCES = (*ONCE_A_SET, "arena", "pool", "workspace", "dispatch")
FLAGS = ("-std=c++17", "-O1", "-pthread", "-DGRADSIEVE_ISA=baseline", "-Wall", "-Wextra", "-Werror",
         "-Wno-psabi", "-Wno-maybe-uninitialized")  # fmt: skip
T, B, HIDDEN = 12, 5, 19


@dataclass(frozen=True)
class Build:
    """A compiler with its flags, and what runs the program."""

    compiler: str
    flags: tuple[str, ...]
    runner: tuple[str, ...] = ()


GCC, CLANG = "g++", "clang++"
BUILDS = {
    "ARM": Build("aarch64-linux-gnu-g++", ("-static",), ("qemu-aarch64",)),
    "no vector extensions": Build(GCC, ("-DGRADSIEVE_PORTABLE",)),
}
INSTRUCTION_SETS = {
    "baseline": (),
    "avx2": ("-mavx2", "-mfma"),
    "avx512": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma"),
}
AS_MSVC = ("-fms-extensions", "-fms-compatibility", "-fms-compatibility-version=19.33")
STRICT = ("-DGRADSIEVE_PORTABLE", "-pedantic-errors", "-Werror=gnu")

x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="not an x86-64 CPU")
with_clang = pytest.mark.skipif(
    shutil.which(CLANG) is None, reason=f"NO {CLANG}: the kernel is not checked by Clang"
)


@pytest.fixture(scope="module", params=BUILDS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs a build."""
    build = BUILDS[request.param]
    absent = [name for name in (build.compiler, *build.runner) if shutil.which(name) is None]
    if absent:
        pytest.skip(f"NO {' OR '.join(absent)}: the kernel is not run: {request.param}")
    folder = tmp_path_factory.mktemp("build")
    compiler = (build.compiler, *FLAGS, *build.flags)

    def compiled(name: str) -> Path:
        target = folder / f"{name}.o"
        subprocess.run([*compiler, "-c", KERNEL / f"{name}.cpp", "-o", target], check=True)
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, SOURCES))
    source = Path(__file__).parent / "kernel_alone.cpp"
    linked = [*compiler, "-I", KERNEL, source, *objects, "-o", folder / "program"]
    subprocess.run(linked, check=True)
    return [*build.runner, str(folder / "program")]


def objections(name: str, flags: tuple[str, ...]) -> str:
    """What Clang has against a source, which is nothing."""
    command = [CLANG, "-std=c++17", "-fsyntax-only", *flags, KERNEL / f"{name}.cpp"]
    read = subprocess.run(command, capture_output=True, text=True, check=False)
    return read.stderr if read.returncode else ""


@x86
@with_clang
@pytest.mark.parametrize("name", INSTRUCTION_SETS)
@pytest.mark.parametrize("dialect", [(), AS_MSVC], ids=["Clang", "as clang-cl"])
def test_clang_takes_every_instruction_set(name, dialect):
    flags = (f"-DGRADSIEVE_ISA={name}", *INSTRUCTION_SETS[name], *dialect)
    assert [objections(source, flags) for source in WITHOUT_ATOMIC] == [""] * len(WITHOUT_ATOMIC)


def own_lines(name: str) -> str:
    """A source and what it includes of ours, as it is without vector extensions."""
    command = [
        GCC,
        "-std=c++17",
        "-E",
        "-fdirectives-only",
        *STRICT[:1],
        "-DGRADSIEVE_ISA=baseline",
    ]
    read = subprocess.run(
        [*command, KERNEL / f"{name}.cpp"], capture_output=True, text=True, check=True
    )
    ours, lines = False, []
    for line in read.stdout.splitlines():
        if marker := re.match(r'# \d+ "([^"]+)"', line):
            ours = Path(marker[1]).parent == KERNEL
        elif ours and not line.startswith("#define"):
            lines.append(line.partition("//")[0])
    return "\n".join(lines)


@pytest.mark.skipif(shutil.which(GCC) is None, reason=f"NO {GCC}")
@pytest.mark.skipif(platform.machine() == "aarch64", reason="ARM's mode is set by an instruction")
@pytest.mark.parametrize("name", SOURCES)
def test_nothing_of_gnu_is_left_without_vector_extensions(name):
    text = own_lines(name)
    assert "namespace gradsieve" in text
    assert re.findall(r"__builtin_\w+|__attribute__|vector_size|__extension__|__asm__", text) == []


@with_clang
@pytest.mark.parametrize("name", SOURCES)
def test_clang_takes_it_without_vector_extensions(name):
    assert objections(name, ("-DGRADSIEVE_ISA=baseline", *STRICT)) == ""


@with_clang
@pytest.mark.parametrize("name", WITHOUT_ATOMIC)
def test_as_msvc_would_read_it_without_vector_extensions(name):
    assert objections(name, ("-DGRADSIEVE_ISA=baseline", *STRICT, *AS_MSVC)) == ""


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-11), (np.float32, 2e-4)])
def test_a_minibatch_gives_what_numpy_gives(program, dtype, close):
    task = gs.tasks.temporal_order(length=T)
    net = gs.SRN.random(task.inputs, HIDDEN, task.outputs, variance=0.05, seed=0, dtype=np.float64)
    net = net.astype(dtype)
    u, t = task.sample(B, seed=1)
    update = np.random.default_rng(2).normal(size=net.flat.size).astype(dtype)
    horizon = T - 1
    sizes = [T, B, task.inputs, HIDDEN, task.outputs, horizon, np.dtype(dtype).itemsize]
    values = [*net.flat, *update, *u.astype(dtype).ravel(), *t]
    given = " ".join([*map(str, sizes), *(float(value).hex() for value in values)])
    ran = subprocess.run(program, input=given, capture_output=True, text=True, check=True)
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
