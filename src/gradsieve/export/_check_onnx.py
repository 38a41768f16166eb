"""An ONNX file is run before it is given away, and compared with the network that it came from."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import GradsieveError, needs_extra
from gradsieve.export._portable import Portable, portable
from gradsieve.model import Model
from gradsieve.network import Array

TOLERANCE = 1e-4


def check_onnx(content: bytes, model: Model | Portable, data: Sequences | None = None) -> float:
    """Run the file with onnxruntime against the network; the largest difference, or an error.

    For a file with int8 weights the network is the `quantised` one. Without data it runs on random
    sequences of three lengths, in the units of the scaling.
    """
    with needs_extra("checking an ONNX file", "onnx"):
        import onnxruntime
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    network = portable(model)
    data = data or _random(network)
    expected = network.outputs(data)
    largest = 0.0
    for number in range(data.count):
        rows = data.steps_of([number])
        y = run_onnx(session, data.values[rows].astype(np.float32))
        wanted = expected[rows] if network.per_step else expected[number]
        if network.per_step != (y.ndim == 2):
            y = y[-1]
        unit = 1.0 if network.scaling.target_spread is None else network.scaling.target_spread
        largest = max(largest, float(np.abs((y - wanted) / unit).max()))
    if not largest <= TOLERANCE:
        raise GradsieveError(
            f"onnxruntime gives other outputs than the network, by {largest:.1e} where "
            f"{TOLERANCE:.0e} is allowed; the inputs may be too large for float32"
        )
    return largest


def run_onnx(session: Any, u: Array) -> Array:
    """The outputs of one raw sequence (steps, inputs): of its last step, or of every one."""
    taken = {value.name: value.shape for value in session.get_inputs()}
    if "h" not in taken:
        feed: dict[str, Array] = {"u": u[None]}
        if "lengths" in taken:
            feed["lengths"] = np.array([len(u)], dtype=np.int32)
        return np.asarray(session.run(["y"], feed)[0][0])
    given = [value.name for value in session.get_outputs()]
    state = {
        name: np.zeros((shape[0], 1, shape[2]), dtype=np.float32)
        for name, shape in taken.items()
        if name in ("h", "c")
    }
    if "last" in taken:
        state["last"] = np.full((1, u.shape[1]), np.nan, dtype=np.float32)
    answers = []
    for step in u:
        values = dict(zip(given, session.run(given, {"u": step[None], **state}), strict=True))
        answers.append(values["y"][0])
        state = {name: values[f"next_{name}"] for name in state}
    return np.array(answers)


def _random(network: Portable) -> Sequences:
    generator = np.random.Generator(np.random.PCG64(0))
    lengths = (7, 7, 7) if network.equal_lengths else (1, 7, 30)
    unit, mean = network.scaling.spread, network.scaling.mean
    drawn = [generator.standard_normal((length, network.inputs)) for length in lengths]
    sequences = [(values * unit + mean).astype(np.float32) for values in drawn]
    count = sum(lengths) if network.per_step else len(lengths)
    if network.classes is not None:
        return from_arrays(sequences, np.zeros(count), network.classes, network.per_step)
    targets = np.zeros((count, network.outputs_each))
    return from_arrays(sequences, targets, per_step=network.per_step)
