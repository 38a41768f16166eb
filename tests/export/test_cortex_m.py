"""The exported C on emulated Cortex-M processors: right, small, and counted."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from exported_models import model_and_data

from gradsieve.data import from_arrays
from gradsieve.errors import InvalidArgument
from gradsieve.export import (
    Board,
    Portable,
    emulated,
    footprint,
    from_torch,
    portable,
    quantised,
)

BOARDS: tuple[Board, ...] = ("cortex-m4f", "cortex-m3", "cortex-m0")
FRAMES = 256  # bytes of stack for saved registers and return addresses, beside local arrays
# Bytes of code, with the test's own: the functions, and without a unit for floats its arithmetic.
CODE = {"cortex-m4f": 2048, "cortex-m3": 4096, "cortex-m0": 6144}

needs_tools = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="NO arm-none-eabi-gcc OR qemu-system-arm: the C export is not run on a Cortex-M",
)


@needs_tools
@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_cortex_m_gives_what_python_gives_within_what_is_promised(
    board: Board, kind: str, weights: str
) -> None:
    model, data = model_and_data(kind, per_step=True, hidden=16)
    found = emulated(model, data, weights, board)  # type: ignore[arg-type]
    expected = quantised(model) if weights == "int8" else portable(model)
    unit = 1.0 if model.scaling.target_spread is None else model.scaling.target_spread
    assert np.abs((found.outputs - expected.outputs(data)) / unit).max() <= 1e-5
    promised = footprint(model, weights)  # type: ignore[arg-type]
    assert found.stack <= promised.stack + FRAMES
    assert 0 <= found.code <= CODE[board]
    multiplied = promised.multiplications_per_step + promised.multiplications_per_output
    if board == "cortex-m4f":  # a load of each factor, a product, a sum and the loop, and tanh
        assert multiplied < found.instructions < 12 * multiplied + 100 * promised.tanh_per_step


def gated(cell: str, hidden: int = 8) -> Portable:
    torch = pytest.importorskip("torch")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[cell](3, hidden)
        return from_torch(layer, torch.nn.Linear(hidden, 3), missing="last")


@needs_tools
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_gated_cells_run_there_too_on_noise_where_no_data_are_given(cell: str) -> None:
    found = emulated(gated(cell), weights="int8")
    assert found.outputs.shape == (50, 3)
    assert found.instructions > footprint(gated(cell)).multiplications_per_step


@needs_tools
def test_missing_inputs_are_filled_there_as_in_python() -> None:
    values = np.random.default_rng(0).normal(size=(2, 9, 3))
    values[0, 0, 1] = values[0, 4, 0] = values[1, 8] = np.nan
    data = from_arrays(list(values), [0, 1], ("0", "1"))
    found = emulated(gated("gru"), data)  # which compares them with Python's answers
    assert np.isfinite(found.outputs).all()


@needs_tools
def test_a_network_that_no_such_board_holds_is_said() -> None:
    from gradsieve.errors import GradsieveError

    with pytest.raises(GradsieveError, match="too large"):
        emulated(gated("lstm", 300))


def test_an_unknown_board_or_a_missing_tool_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = model_and_data()
    with pytest.raises(InvalidArgument, match="board is 'z80'"):
        emulated(model, board="z80")  # type: ignore[arg-type]
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidArgument, match="arm-none-eabi-gcc is not installed"):
        emulated(model)
