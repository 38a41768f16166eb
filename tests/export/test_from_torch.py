"""PyTorch's recurrent modules, exported: C and ONNX answer as PyTorch does."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from safetensors.torch import save_model
from test_c import MAIN, outputs_of_c
from torch import nn

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.export import (
    Description,
    check_onnx,
    footprint,
    from_torch,
    quantised,
    read_torch,
    to_c,
    to_onnx,
)
from gradsieve.network import Array

MEAN, SPREAD = (5.0, 0.0, -100.0), (2.0, 1.0, 50.0)
CELLS = {
    "tanh": lambda **options: nn.RNN(3, 7, **options),
    "relu": lambda **options: nn.RNN(3, 7, nonlinearity="relu", **options),
    "gru": lambda **options: nn.GRU(3, 7, **options),
    "lstm": lambda **options: nn.LSTM(3, 7, **options),
}
needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="NO C COMPILER: the C export is not tested without gcc"
)


class Net(nn.Module):
    def __init__(self, cell: str, **options: Any) -> None:
        super().__init__()
        self.rnn = CELLS[cell](batch_first=True, **options)
        self.fc = nn.Linear(7, 4)

    def forward(self, u: Any) -> Any:
        return self.fc(self.rnn(u)[0])


def made(cell: str, **options: Any) -> Net:
    torch.manual_seed(0)
    return Net(cell, **options).eval()


def sequences() -> Sequences:
    generator = np.random.default_rng(0)
    values = [
        (generator.standard_normal((length, 3)) * SPREAD + MEAN).astype(np.float32)
        for length in (1, 12, 40)
    ]
    return from_arrays(values, np.zeros(53), tuple("abcd"), per_step=True)


def of_torch(net: Net, data: Sequences) -> Array:
    """(steps, 4): PyTorch's probabilities after every step, in float64."""
    net = net.double()
    found = []
    with torch.no_grad():
        for number in range(data.count):
            values = (data.values[data.steps_of([number])] - MEAN) / SPREAD
            found.append(net(torch.from_numpy(values)[None])[0].softmax(dim=-1).numpy())
    net.float()
    return np.concatenate(found)


def exported(net: Net, **more: Any) -> Any:
    options = {"mean": MEAN, "spread": SPREAD, "classes": "abcd", "per": "step"} | more
    return from_torch(net.rnn, net.fc, **options)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("options", [{}, {"num_layers": 3}, {"bias": False}])
def test_python_says_what_pytorch_says(cell: str, options: dict[str, Any]) -> None:
    net, data = made(cell, **options), sequences()
    network = exported(net)
    np.testing.assert_allclose(network.outputs(data), of_torch(net, data), atol=1e-12)
    if "bias" not in options:
        sizes = {name: weights.numel() for name, weights in net.named_parameters()}
        merged = sum(size for name, size in sizes.items() if "bias_hh" in name)
        b_n = merged // 3 if cell == "gru" else 0  # the other biases are added up
        assert network.parameters == sum(sizes.values()) - merged + b_n


@needs_gcc
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_c_says_what_pytorch_says(tmp_path: Path, cell: str, layers: int, weights: Any) -> None:
    net, data = made(cell, num_layers=layers), sequences()
    network = exported(net)
    sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    found = outputs_of_c(tmp_path, to_c(network, "net", weights), data, flags=sanitized)
    if weights == "int8":
        rounded = quantised(network)
        np.testing.assert_allclose(found, rounded.outputs(data), atol=1e-5)
        assert 0 < np.abs(found - of_torch(net, data)).max() < 0.1
        with torch.no_grad():  # the rounded weights, in PyTorch
            for number, layer in enumerate(rounded.layers):
                getattr(net.rnn, f"weight_ih_l{number}").copy_(torch.from_numpy(layer.w_ih))
                getattr(net.rnn, f"weight_hh_l{number}").copy_(torch.from_numpy(layer.w_hh))
            net.fc.weight.copy_(torch.from_numpy(rounded.w_out))
    np.testing.assert_allclose(found, of_torch(net, data), atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("streaming", [False, True])
def test_onnx_says_what_pytorch_says(cell: str, layers: int, weights: Any, streaming: bool) -> None:
    pytest.importorskip("onnxruntime")
    net, data = made(cell, num_layers=layers), sequences()
    for per in ("step", "series"):
        network = exported(net, per=per)
        content = to_onnx(network, weights=weights, streaming=streaming)
        same = data if per == "step" else from_arrays(
            [data.values[data.steps_of([n])] for n in range(3)], np.zeros(3), tuple("abcd")
        )  # fmt: skip
        expected = quantised(network) if weights == "int8" else network
        assert check_onnx(content, expected, same) <= 1e-5


def test_an_onnx_file_with_int8_weights_is_a_third_as_large() -> None:
    pytest.importorskip("onnx")
    network = from_torch(nn.LSTM(3, 64), nn.Linear(64, 4))
    assert len(to_onnx(network, weights="int8")) < 0.35 * len(to_onnx(network))


@needs_gcc
@pytest.mark.parametrize("cell", CELLS)
def test_the_footprint_is_what_the_compiler_makes_of_it(tmp_path: Path, cell: str) -> None:
    network = exported(made(cell, num_layers=2), missing="last")
    for weights in ("float32", "int8"):
        (tmp_path / "net.h").write_text(to_c(network, "net", weights))
        (tmp_path / "use.c").write_text(
            '#include "net.h"\nint use(net_state *s, const float *u, float *y);\n'
            "const int size = (int)sizeof(net_state);\n"
            "int use(net_state *s, const float *u, float *y)"
            "{ const int n = net_step(s, u); net_output(s, y); return n; }\n"
        )
        subprocess.run(["gcc", "-std=c99", "-Os", "-c", "use.c"], check=True, cwd=tmp_path)
        listed = subprocess.run(
            ["size", "-A", "use.o"], check=True, cwd=tmp_path, capture_output=True, text=True
        ).stdout
        rows = [line.split() for line in listed.splitlines() if line.startswith(".rodata")]
        data = sum(int(row[1]) for row in rows) - 4
        said = footprint(network, weights)
        assert said.flash <= data <= said.flash + 32 * 16 + 64  # alignment, constants of the code
        main = '#include <stdio.h>\n#include "net.h"\nint main(void)'
        main += '{ printf("%d", (int)sizeof(net_state)); return 0; }\n'
        (tmp_path / "main.c").write_text(main)
        subprocess.run(["gcc", "-std=c99", "-o", "main", "main.c"], check=True, cwd=tmp_path)
        printed = subprocess.run([tmp_path / "main"], capture_output=True, check=True).stdout
        assert int(printed) == said.ram


@needs_gcc
@pytest.mark.parametrize("missing", ["refuse", "mean", "last"])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_missing_input_is_what_was_chosen(tmp_path: Path, missing: Any, scaled: bool) -> None:
    """C against a sequence whose gaps were filled by hand, or whose steps were left out."""
    net, data = made("gru"), sequences()
    options = {} if scaled else {"mean": (0.0,) * 3, "spread": (1.0,) * 3}
    mean = np.array(options.get("mean", MEAN))
    network = exported(net, missing=missing, **options)
    whole = data.values[data.steps_of([2])] if scaled else (data.values[13:] - MEAN) / SPREAD
    whole = whole.astype(np.float32).astype(np.float64)
    gaps = np.zeros(whole.shape, dtype=bool)
    gaps[[0, 5, 6, 6, 30], [1, 0, 0, 2, 1]] = True
    holed = np.where(gaps, np.nan, whole)
    byhand = whole.copy()
    for step, column in np.argwhere(gaps):
        before = byhand[step - 1, column] if step and missing == "last" else mean[column]
        byhand[step, column] = before
    kept = byhand if missing != "refuse" else whole[~gaps.any(axis=1)]
    raw = [from_arrays([values], np.zeros(len(values)), tuple("abcd"), True)
           for values in (holed, kept)]  # fmt: skip
    header = to_c(network, "net")
    found, expected = (outputs_of_c(tmp_path, header, one) for one in raw)
    taken = found if missing != "refuse" else found[~gaps.any(axis=1)]
    np.testing.assert_array_equal(taken, expected)
    counted = MAIN.replace("net_step(&state, u);", 'printf("%d\\n", net_step(&state, u));')
    counted = counted.replace("net_output(&state, y);", "y[0] = 0; (void)y; continue;")
    told = outputs_of_c(tmp_path, header, raw[0], counted)
    np.testing.assert_array_equal(told[:, 0], gaps.sum(axis=1))
    if missing == "refuse":
        with pytest.raises(InvalidArgument, match=r"'input 2' is missing at step 1 of series '1'"):
            network.outputs(raw[0])
        return
    np.testing.assert_allclose(found, network.outputs(raw[0]), atol=1e-5)
    pytest.importorskip("onnxruntime")
    assert check_onnx(to_onnx(network, streaming=True), network, raw[0]) <= 1e-5
    if missing == "mean":
        assert check_onnx(to_onnx(network), network, raw[0]) <= 1e-5
    else:
        with pytest.raises(InvalidArgument, match="choose streaming"):
            to_onnx(network)


@needs_gcc
def test_reset_leaves_nothing_of_the_sequence_before(tmp_path: Path) -> None:
    net, data = made("lstm", num_layers=2), sequences()
    header = to_c(exported(net, missing="last"), "net")
    last = data.subset([2])
    together, alone = (outputs_of_c(tmp_path, header, one) for one in (data, last))
    np.testing.assert_array_equal(together[13:], alone)


def test_a_file_of_a_module_is_read_with_or_without_a_description(tmp_path: Path) -> None:
    net, data = made("lstm", num_layers=2), sequences()
    save_model(net, str(tmp_path / "net.safetensors"))
    plain = read_torch(tmp_path / "net.safetensors")
    assert (plain.cell, len(plain.layers), plain.classes) == ("lstm", 2, ("0", "1", "2", "3"))
    said = {"recurrent": "rnn", "head": "fc", "classes": list("abcd"), "per": "step",
            "mean": MEAN, "spread": SPREAD, "inputs": ["x", "y", "z"]}  # fmt: skip
    (tmp_path / "net.json").write_text(json.dumps(said))
    described = Description.from_json(tmp_path / "net.json")
    network = read_torch(tmp_path / "net.safetensors", described)
    np.testing.assert_allclose(network.outputs(data), of_torch(net, data), atol=1e-12)
    assert network.features == ("x", "y", "z")


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"cell": "rnn"}, "cell is 'rnn'; it may be tanh, relu, gru, lstm"),
        ({"layers": 2}, "has 'layers'; it may have cell, recurrent"),
        ({"recurrent": "gru"}, "recurrent is 'gru'; the file has"),
        ({"head": "rnn"}, "head is 'rnn'"),
        ({"classes": ["a"]}, "classes has 1 names; there must be 4"),
        ({"output": "linear", "classes": list("abcd")}, "classes do not go with a linear output"),
        ({"mean": [1]}, "mean is not 3 numbers"),
        ({"spread": [1, 0, 1]}, "spread is not 3 numbers that can scale"),
        ({"cell": "gru"}, "w_ih of layer 0 has shape"),
        ([], "object"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path: Path, said: Any, says: str) -> None:
    save_model(made("tanh"), str(tmp_path / "net.safetensors"))
    (tmp_path / "net.json").write_text(json.dumps(said))
    with pytest.raises(InvalidFile, match=says):
        read_torch(tmp_path / "net.safetensors", Description.from_json(tmp_path / "net.json"))


def test_what_cannot_run_step_by_step_is_refused(tmp_path: Path) -> None:
    net = made("gru")
    both = nn.GRU(3, 7, bidirectional=True)
    with pytest.raises(InvalidArgument, match="bidirectional; a device knows one direction"):
        from_torch(both, nn.Linear(14, 4))
    with pytest.raises(InvalidArgument, match="proj_size"):
        from_torch(nn.LSTM(3, 7, proj_size=2), nn.Linear(2, 4))
    with pytest.raises(InvalidArgument, match="head is 'head'; the file has"):
        from_torch(net.rnn, nn.Linear(8, 4))
    with pytest.raises(InvalidArgument, match=r"module is Linear; it must be an nn\.RNN"):
        from_torch(net.fc, net.fc)
    with pytest.raises(InvalidArgument, match="head is GRU"):
        from_torch(net.rnn, net.rnn)
    with torch.no_grad():
        net.fc.weight[0, 0] = torch.nan
    with pytest.raises(InvalidArgument, match="not all finite"):
        exported(net)
    with pytest.raises(InvalidFile, match="no such file"):
        read_torch(tmp_path / "absent.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(InvalidFile, match="no safetensors file"):
        read_torch(tmp_path / "bad.safetensors")
    from safetensors.numpy import save_file

    save_file({"x": np.zeros(2)}, tmp_path / "x.safetensors")
    with pytest.raises(InvalidFile, match="there must be one recurrent module, and there is none"):
        read_torch(tmp_path / "x.safetensors")
