"""The C header: it compiles without a warning, runs, and says what Python says."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from exported_models import model_and_data

from gradsieve.data import Scaling, Sequences, read
from gradsieve.errors import InvalidArgument
from gradsieve.export import Portable, footprint, portable, quantised, to_c
from gradsieve.model import Model
from gradsieve.network import SRN, Array

STRICT = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="NO C COMPILER: the C export is not tested without gcc"
)

MAIN = r"""
#include <stdio.h>
#include "net.h"
/* Reads lengths and values, prints the output after every step. */
int main(void)
{
    int length, step, n;
    float u[NET_INPUTS], y[NET_OUTPUTS];
    net_state state;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        net_reset(&state);
        for (step = 0; step < length; step++) {
            if (fread(u, sizeof u, 1, stdin) != 1) return 1;
            net_step(&state, u);
            net_output(&state, y);
            for (n = 0; n < NET_OUTPUTS; n++) printf("%.9g ", (double)y[n]);
            printf("\n");
        }
    }
    return 0;
}
"""


def outputs_of_c(
    folder: Path, header: str, data: Sequences, main: str = MAIN, flags: Sequence[str] = ()
) -> Array:
    """(steps, O): what the compiled header gives after every step of every sequence."""
    (folder / "net.h").write_text(header)
    (folder / "main.c").write_text(main)
    program = folder / "main"
    subprocess.run([*STRICT, *flags, "-o", program, folder / "main.c"], check=True, cwd=folder)
    fed = b"".join(
        np.int32(length).tobytes() + data.values[data.steps_of([n])].astype(np.float32).tobytes()
        for n, length in enumerate(data.lengths)
    )
    printed = subprocess.run([program], input=fed, capture_output=True, check=True).stdout
    return np.array([line.split() for line in printed.decode().splitlines()], dtype=np.float64)


def last_steps(steps: Array, data: Sequences) -> Array:
    return steps[data.offsets[1:] - 1]


def deviation(model: Model | Portable, found: Array, data: Sequences) -> float:
    """Largest difference in the units of the network."""
    unit = 1.0 if model.scaling.target_spread is None else model.scaling.target_spread
    expected = model.outputs(data)  # in float64
    return float(np.abs((found - expected) / unit).max())


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_c_and_python_agree_within_1e_5(
    tmp_path: Path, kind: str, per_step: bool, weights: str
) -> None:
    model, data = model_and_data(kind, per_step)
    found = outputs_of_c(tmp_path, to_c(model, "net", weights), data)  # type: ignore[arg-type]
    expected = quantised(model) if weights == "int8" else portable(model)
    assert deviation(expected, found if per_step else last_steps(found, data), data) <= 1e-5


def test_c_agrees_on_real_sequences(tmp_path: Path) -> None:
    datasets = pytest.importorskip("aeon.datasets")
    path = Path(datasets.__file__).parent / "data/JapaneseVowels/JapaneseVowels_TRAIN.ts"
    data = read(path)
    net = SRN.random(data.inputs, 32, data.outputs, variance=1 / 32, seed=3)
    model = Model(net, scaling=Scaling.of(data), classes=data.classes, features=data.features)
    found = outputs_of_c(tmp_path, to_c(model, "net"), data)
    assert deviation(model, last_steps(found, data), data) <= 1e-5


def test_a_plain_network_needs_no_scaling(tmp_path: Path) -> None:
    _, data = model_and_data()
    model = Model.of(SRN.random(3, 5, 3, variance=0.2, seed=0))
    header = to_c(model, "net")
    assert "mean" not in header
    found = outputs_of_c(tmp_path, header, data)
    assert deviation(model, last_steps(found, data), data) <= 1e-5


def test_tanh_and_exp_are_right_to_a_few_units_in_the_last_place(tmp_path: Path) -> None:
    main = r"""
    #include <stdio.h>
    #include "net.h"
    int main(void)
    {
        float x;
        while (fread(&x, sizeof x, 1, stdin) == 1)
            printf("%.9g %.9g\n", (double)net_tanh(x), (double)net_exp(x));
        return 0;
    }
    """
    model, _ = model_and_data()
    (tmp_path / "net.h").write_text(to_c(model, "net"))
    (tmp_path / "main.c").write_text(main)
    subprocess.run([*STRICT, "-o", "main", "main.c"], check=True, cwd=tmp_path)
    x = np.concatenate(
        [np.linspace(-86, 87, 40_001), np.linspace(-0.5, 0.5, 20_001), [-1e30, 1e30]]
    )
    x = x.astype(np.float32)
    printed = subprocess.run(
        [tmp_path / "main"], input=x.tobytes(), capture_output=True, check=True
    ).stdout
    found = np.array([line.split() for line in printed.decode().splitlines()], dtype=np.float64)
    exact = np.tanh(x.astype(np.float64))
    assert np.abs(found[:, 0] - exact).max() < 3e-7
    small = x != 0
    assert np.abs(found[small, 0] / exact[small] - 1).max() < 1e-6
    ordinary = np.abs(x) < 100
    assert np.abs(found[ordinary, 1] / np.exp(x[ordinary].astype(np.float64)) - 1).max() < 1e-6


def test_labels_come_out_as_they_were(tmp_path: Path) -> None:
    model, _ = model_and_data()
    (tmp_path / "net.h").write_text(to_c(model, "net"))
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "net.h"\nint main(void) { int n; net_state s; net_reset(&s);'
        "for (n = 0; n < NET_OUTPUTS; n++) puts(net_label(n)); return net_class(&s) < 0; }\n"
    )
    subprocess.run([*STRICT, "-trigraphs", "-o", "main", "main.c"], check=True, cwd=tmp_path)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout
    assert tuple(printed.decode().splitlines()) == model.classes


def test_two_networks_live_side_by_side_and_the_state_is_as_large_as_said(tmp_path: Path) -> None:
    first, _ = model_and_data(hidden=9)
    second, _ = model_and_data("regression", hidden=4)
    (tmp_path / "one.h").write_text(to_c(first, "one"))
    (tmp_path / "two.h").write_text(to_c(second, "two", "int8"))
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "one.h"\n#include "two.h"\n'
        'int main(void) { printf("%d %d", (int)sizeof(one_state), (int)sizeof(two_state));'
        " return 0; }\n"
    )
    subprocess.run([*STRICT, "-o", "main", "main.c"], check=True, cwd=tmp_path)
    printed = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout
    assert [int(size) for size in printed.split()] == [
        footprint(first).ram,
        footprint(second, "int8").ram,
    ]


@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_flash_is_what_the_compiler_puts_into_read_only_data(
    tmp_path: Path, kind: str, weights: str
) -> None:
    model, _ = model_and_data(kind, hidden=32)
    (tmp_path / "net.h").write_text(to_c(model, "net", weights))  # type: ignore[arg-type]
    (tmp_path / "use.c").write_text(
        '#include "net.h"\nvoid use(net_state *s, const float *u, float *y);\n'
        "void use(net_state *s, const float *u, float *y)"
        "{ net_step(s, u); net_output(s, y); }\n"
    )
    subprocess.run([*STRICT, "-Os", "-c", "use.c"], check=True, cwd=tmp_path)
    listed = subprocess.run(
        ["size", "-A", "use.o"], check=True, cwd=tmp_path, capture_output=True, text=True
    ).stdout
    data = sum(int(line.split()[1]) for line in listed.splitlines() if line.startswith(".rodata"))
    said = footprint(model, weights).flash  # type: ignore[arg-type]
    assert said <= data <= said + 32 * 12 + 64  # alignment of each array, constants of the code


def test_int8_rows_are_within_half_a_step_of_their_weights() -> None:
    model, _ = model_and_data(hidden=20)
    rounded = quantised(model).layers[0].w_hh.T
    step = np.abs(model.net.w_rec).max(axis=0) / 127
    assert (np.abs(rounded - model.net.w_rec) <= 0.5001 * step).all()


@pytest.mark.parametrize("name", ["9lives", "int", "a b", "", "x" * 60, "a*/"])
def test_a_name_that_is_none_in_c_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument, match="must be a C name"):
        to_c(model_and_data()[0], name)


def test_weights_that_are_neither_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="'float32' or 'int8'"):
        to_c(model_and_data()[0], weights="int4")  # type: ignore[arg-type]
