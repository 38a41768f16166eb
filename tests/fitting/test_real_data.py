"""Real series from the aeon package: read, fitted, exported, and the exports run on them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from gradsieve.data import Sequences, read
from gradsieve.export import check_onnx, quantised, to_c, to_onnx
from gradsieve.fitting import fit, own_recipe
from gradsieve.network import Array

datasets = pytest.importorskip("aeon.datasets")

QUICK = own_recipe().replaced(epochs=60, iterations=20)
MAIN = r"""
#include <stdio.h>
#include "net.h"
int main(void)
{
    int length, step;
    float u[NET_INPUTS];
    net_state state;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        net_reset(&state);
        for (step = 0; step < length; step++) {
            if (fread(u, sizeof u, 1, stdin) != 1) return 1;
            net_step(&state, u);
        }
        printf("%d\n", net_class(&state));
    }
    return 0;
}
"""


def parts(name: str) -> tuple[Sequences, Sequences]:
    folder = Path(datasets.__file__).parent / "data" / name
    return read(folder / f"{name}_TRAIN.ts"), read(folder / f"{name}_TEST.ts")


def classes_of_c(folder: Path, header: str, data: Sequences) -> Array:
    (folder / "net.h").write_text(header)
    (folder / "main.c").write_text(MAIN)
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]
    subprocess.run(["gcc", *strict, "-o", "main", "main.c"], check=True, cwd=folder)
    fed = b"".join(
        np.int32(length).tobytes() + data.values[data.steps_of([n])].astype(np.float32).tobytes()
        for n, length in enumerate(data.lengths)
    )
    printed = subprocess.run([folder / "main"], input=fed, capture_output=True, check=True).stdout
    return np.array(printed.split(), dtype=np.int64)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="NO C COMPILER: exports are not run")
@pytest.mark.parametrize(
    ("name", "rate", "at_least"),
    [
        ("ItalyPowerDemand", 0.003, 0.88),
        ("JapaneseVowels", 0.01, 0.88),
        ("BasicMotions", 0.003, 0.5),
        ("GunPoint", 0.003, 0.6),
    ],
)
def test_from_a_real_file_to_a_program_on_its_test_part(
    tmp_path: Path, name: str, rate: float, at_least: float
) -> None:
    train, test = parts(name)
    fitted = fit(train, QUICK.replaced(learning_rate=rate), test=test)
    assert fitted.score.value >= at_least
    assert fitted.score.value > fitted.task.constant_guess
    tested = fitted.task.tested
    expected = fitted.model.outputs(tested).argmax(axis=1)
    found = classes_of_c(tmp_path, to_c(fitted.model, "net"), tested)
    assert (found == expected).mean() > 0.99  # ties aside, all of them
    rounded = quantised(fitted.model).outputs(tested).argmax(axis=1)
    in_bytes = classes_of_c(tmp_path, to_c(fitted.model, "net", "int8"), tested)
    assert (in_bytes == rounded).mean() > 0.99
    assert (in_bytes == tested.targets).mean() >= fitted.score.value - 0.1
    pytest.importorskip("onnxruntime")
    assert check_onnx(to_onnx(fitted.model), fitted.model, tested.subset(np.arange(20))) < 1e-4
