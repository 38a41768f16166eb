"""The exported C on emulated Cortex-M processors: right, small, and counted.

QEMU executes the program as a board would: from a reset vector, with 16 kB of memory, no operating
system and no C library. With `-icount shift=0` every instruction takes one nanosecond of the
board's time, so that its 25 MHz timer counts instructions by forties.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from exported_models import model_and_data

from gradsieve.data import Sequences
from gradsieve.export import footprint, portable, quantised, to_c
from gradsieve.network import Array

HERE = Path(__file__).parent
GCC, QEMU, SIZE = "arm-none-eabi-gcc", "qemu-system-arm", "arm-none-eabi-size"
FLAGS = ["-std=c99", "-Os", "-mthumb", "-ffreestanding", "-nostdlib", "-nostartfiles",
         "-Wall", "-Wextra", "-Werror", "-ffunction-sections", "-Wl,--gc-sections"]  # fmt: skip
BOARDS = {  # processor: QEMU's board, its compiler flags
    "cortex-m4f": (
        "mps2-an386",
        ["-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
    ),
    "cortex-m3": ("mps2-an385", ["-mcpu=cortex-m3"]),
    "cortex-m0": ("microbit", ["-mcpu=cortex-m0"]),
}
INSTRUCTIONS_PER_TICK = 40
FRAMES = 256  # bytes of stack for saved registers and return addresses, beside local arrays
# Bytes of code, with the test's own: the functions, and without a unit for floats its arithmetic.
CODE = {"cortex-m4f": 2048, "cortex-m3": 4096, "cortex-m0": 6144}

pytestmark = pytest.mark.skipif(
    shutil.which(GCC) is None or shutil.which(QEMU) is None,
    reason=f"NO {GCC} OR {QEMU}: the C export is not run on a Cortex-M",
)


@dataclass(frozen=True)
class Ran:
    """What a board said."""

    outputs: Array  # (steps, O)
    instructions: float  # of a step with its output
    stack: int  # bytes
    text: int  # bytes of the whole program in flash


def ran(folder: Path, board: str, header: str, data: Sequences) -> Ran:
    machine, processor = BOARDS[board]
    values = ", ".join(f"{float(value).hex()}f" for value in data.values.astype(np.float32).ravel())
    (folder / "net.h").write_text(header)
    (folder / "fed.h").write_text(
        f"#define SEQUENCES {data.count}\n"
        f"static const int lengths[] = {{{', '.join(map(str, data.lengths))}}};\n"
        f"static const float fed[] = {{{values}}};\n"
    )
    program = folder / "program.elf"
    sources = [HERE / "cortex_m.c", "-I", folder, "-T", HERE / "cortex_m.ld", "-lgcc"]
    subprocess.run([GCC, *FLAGS, *processor, "-o", program, *sources], check=True)
    said = subprocess.run(
        [QEMU, "-M", machine, "-nographic", "-monitor", "none", "-serial", "none",
         "-icount", "shift=0", "-chardev", "file,id=said,path=said.txt",
         "-semihosting-config", "enable=on,target=native,chardev=said", "-kernel", program],
        capture_output=True, text=True, timeout=120, cwd=folder, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    words = np.array([int(line, 16) for line in (folder / "said.txt").read_text().split()])
    *bits, ticks, stack = words.astype(np.uint32)
    outputs = np.array(bits, dtype=np.uint32).view(np.float32).reshape(int(data.offsets[-1]), -1)
    listed = subprocess.run([SIZE, program], capture_output=True, text=True, check=True).stdout
    steps = int(data.offsets[-1])
    return Ran(
        outputs.astype(np.float64),
        int(ticks) * INSTRUCTIONS_PER_TICK / steps,
        int(stack),
        int(listed.splitlines()[1].split()[0]),
    )


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_cortex_m_gives_what_python_gives_within_what_is_promised(
    tmp_path: Path, board: str, kind: str, weights: str
) -> None:
    model, data = model_and_data(kind, per_step=True, hidden=16)
    found = ran(tmp_path, board, to_c(model, "net", weights), data)  # type: ignore[arg-type]
    expected = quantised(model) if weights == "int8" else portable(model)
    unit = 1.0 if model.scaling.target_spread is None else model.scaling.target_spread
    assert np.abs((found.outputs - expected.outputs(data)) / unit).max() <= 1e-5
    promised = footprint(model, weights)  # type: ignore[arg-type]
    assert found.stack <= promised.stack + FRAMES
    fed = data.values.size * 4 + data.count * 4
    assert promised.flash <= found.text - fed <= promised.flash + CODE[board]
    multiplied = promised.multiplications_per_step + promised.multiplications_per_output
    if board == "cortex-m4f":  # a load of each factor, a product, a sum and the loop, and tanh
        assert multiplied < found.instructions < 12 * multiplied + 100 * promised.tanh_per_step
