"""The exported C on an emulated Cortex-M: its answers, its instructions, its code and stack.

QEMU executes the program as a board would: from a reset vector, with 16 kB of memory, no operating
system and no C library. With `-icount shift=0` every instruction takes one nanosecond of the
board's time, so that its 25 MHz timer counts instructions by forties. Cycles are not counted: a
processor takes one or more for an instruction.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import GradsieveError, InvalidArgument, one_of
from gradsieve.export._c import to_c
from gradsieve.export._footprint import WeightFormat, footprint
from gradsieve.export._int8 import quantised
from gradsieve.export._portable import Portable, portable
from gradsieve.model import Model
from gradsieve.network import Array

Board = Literal["cortex-m4f", "cortex-m3", "cortex-m0"]
GCC, QEMU, SIZE = "arm-none-eabi-gcc", "qemu-system-arm", "arm-none-eabi-size"
FLAGS = ["-std=c99", "-Os", "-mthumb", "-ffreestanding", "-nostdlib", "-nostartfiles",
         "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-Wl,--gc-sections"]  # fmt: skip
MACHINES: dict[Board, tuple[str, list[str]]] = {  # QEMU's board, the compiler's flags
    "cortex-m4f": (
        "mps2-an386",
        ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
    ),
    "cortex-m3": ("mps2-an385", ["-mcpu=cortex-m3"]),
    "cortex-m0": ("microbit", ["-mcpu=cortex-m0"]),
}
INSTRUCTIONS_PER_TICK = 40
MOST_VALUES = 8_000  # of inputs, which lie in the board's flash
SECONDS = 120
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Emulated:
    """A run on a board."""

    board: Board
    outputs: Array  # (steps, O): the answer after every step
    instructions: float  # of a step and the answer after it, mean
    stack: int  # bytes
    code: int  # bytes of the program beside the network's constants and the inputs


def emulated(
    model: Model | Portable,
    data: Sequences | None = None,
    weights: WeightFormat = "float32",
    board: Board = "cortex-m4f",
) -> Emulated:
    """Run the C export on an emulated board, as much of the data as its flash holds.

    Without data it runs on noise in the units of the scaling. Its answers must be those of Python.
    """
    one_of("board", board, MACHINES)
    for tool in (GCC, QEMU, SIZE):
        if shutil.which(tool) is None:
            raise InvalidArgument(
                f"{tool} is not installed; emulating a {board} needs arm-none-eabi-gcc and "
                "qemu-system-arm"
            )
    network = portable(model)
    fed = _fitting(network, data)
    with tempfile.TemporaryDirectory() as folder:
        found = _ran(Path(folder), board, to_c(network, "net", weights), fed)
    exact = replace(quantised(network) if weights == "int8" else network, per_step=True)
    unit = 1.0 if network.scaling.target_spread is None else network.scaling.target_spread
    largest = float(np.abs((found.outputs - exact.outputs(fed)) / unit).max())
    if not largest <= TOLERANCE:
        raise GradsieveError(
            f"the emulated {board} gives other answers than Python, by {largest:.1e} where "
            f"{TOLERANCE:.0e} is allowed"
        )
    constants = footprint(network, weights).flash
    return replace(found, code=found.code - constants)


def _fitting(network: Portable, data: Sequences | None) -> Sequences:
    """As many sequences as fit, in float32, with targets that nobody looks at."""
    if data is None:
        noise = np.random.Generator(np.random.PCG64(0)).standard_normal((2, 25, network.inputs))
        sequences = list(noise * network.scaling.spread + network.scaling.mean)
    else:
        network.check_inputs(data)
        steps = MOST_VALUES // network.inputs
        sequences = [data.values[data.steps_of([0])][:steps]]
        for number in range(1, data.count):
            one = data.values[data.steps_of([number])]
            if sum(map(len, sequences)) + len(one) > steps:
                break
            sequences.append(one)
    single = [sequence.astype(np.float32) for sequence in sequences]
    return from_arrays(single, np.zeros((sum(map(len, single)), 1)), per_step=True)


def _ran(folder: Path, board: Board, header: str, data: Sequences) -> Emulated:
    machine, processor = MACHINES[board]
    values = ", ".join(map(_literal, data.values.astype(np.float32).ravel()))
    (folder / "net.h").write_text(header)
    (folder / "fed.h").write_text(
        f"#define SEQUENCES {data.count}\n"
        f"static const int lengths[] = {{{', '.join(map(str, data.lengths))}}};\n"
        f"static const float fed[] = {{{values}}};\n"
    )
    program = folder / "program.elf"
    with as_file(files("gradsieve.export")) as package:
        sources = [str(package / "cortex_m.c"), "-I", str(folder), "-T",
                   str(package / "cortex_m.ld"), "-lgcc"]  # fmt: skip
        _run([GCC, *FLAGS, *processor, "-o", str(program), *sources], folder)
    _run(
        [QEMU, "-M", machine, "-nographic", "-monitor", "none", "-serial", "none",
         "-icount", "shift=0", "-chardev", "file,id=said,path=said.txt",
         "-semihosting-config", "enable=on,target=native,chardev=said", "-kernel", str(program)],
        folder,
    )  # fmt: skip
    words = np.array([int(line, 16) for line in (folder / "said.txt").read_text().split()])
    *bits, ticks, stack = words.astype(np.uint32)
    steps = int(data.offsets[-1])
    outputs = np.array(bits, dtype=np.uint32).view(np.float32).reshape(steps, -1)
    listed = _run([SIZE, str(program)], folder).splitlines()[1].split()
    fed = data.values.size * 4 + data.count * 4
    return Emulated(
        board=board,
        outputs=outputs.astype(np.float64),
        instructions=int(ticks) * INSTRUCTIONS_PER_TICK / steps,
        stack=int(stack),
        code=int(listed[0]) - fed,
    )


def _literal(value: Any) -> str:
    return f"{float(value).hex()}f" if np.isfinite(value) else '__builtin_nanf("")'


def _run(command: list[str], folder: Path) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS, cwd=folder, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise GradsieveError(f"{command[0]} has not ended after {SECONDS} seconds") from error
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        raise GradsieveError(
            f"{command[0]} ended with {done.returncode}; the network may be too large for 256 kB "
            f"of flash and 16 kB of memory ({said})"
        )
    return done.stdout
