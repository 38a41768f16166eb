"""ONNX: scaling, one standard RNN node, read-out; any batch, any length.

Inputs are `u` (batch, time, inputs), raw, and where wanted `lengths` (batch,) int32 for sequences
that begin at step 0 and are padded at their end. The output `y` is (batch, outputs) after the last
step of each, or (batch, time, outputs) for a model with an answer at every step.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gradsieve.data import Sequences, from_arrays
from gradsieve.errors import GradsieveError, MissingExtra
from gradsieve.export._footprint import is_identity
from gradsieve.model import Model
from gradsieve.network import Array

OPSET = 17
IR_VERSION = 8  # the one of opset 17, so that a runtime of its time reads the file
TOLERANCE = 1e-4


def to_onnx(model: Model, lengths: bool | None = None) -> bytes:
    """The file's bytes. `lengths`: whether it takes lengths; as it was trained, by default."""
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError as error:
        raise MissingExtra("exporting to ONNX", "onnx") from error
    net = model.net
    with_lengths = not model.equal_lengths if lengths is None else lengths
    graph = _Graph(helper, onnx.numpy_helper)
    here = "u"
    if not is_identity(model):
        here = graph.add("Sub", here, graph.constant("mean", model.scaling.mean))
        here = graph.add("Div", here, graph.constant("spread", model.scaling.spread))
    time_first = graph.add("Transpose", here, perm=[1, 0, 2])
    recurrent = [
        time_first,
        graph.constant("w_in", net.w_in.T[None]),
        graph.constant("w_rec", net.w_rec.T[None]),
        graph.constant("b", np.concatenate([net.b, np.zeros(net.hidden)])[None]),
        "lengths" if with_lengths else "",
    ]
    graph.nodes.append(
        helper.make_node(
            "RNN", recurrent, ["states", "last"], hidden_size=net.hidden, activations=["Tanh"]
        )
    )
    if model.per_step:
        axis = graph.integers("direction", [1])
        here = graph.add("Transpose", graph.add("Squeeze", "states", axis), perm=[1, 0, 2])
    else:
        here = graph.add("Squeeze", "last", graph.integers("direction", [0]))
    here = graph.add("MatMul", here, graph.constant("w_out", net.w_out))
    here = graph.add("Add", here, graph.constant("b_out", net.b_out))
    if net.output == "softmax":
        here = graph.add("Softmax", here, axis=-1)
    elif model.scaling.target_mean is not None and model.scaling.target_spread is not None:
        spread = graph.constant("target_spread", model.scaling.target_spread)
        here = graph.add("Mul", here, spread)
        here = graph.add("Add", here, graph.constant("target_mean", model.scaling.target_mean))
    graph.nodes.append(helper.make_node("Identity", [here], ["y"]))
    answer: list[str | int | None] = ["batch", "time"] if model.per_step else ["batch"]
    shape = [*answer, net.outputs]
    raw: list[str | int | None] = ["batch", "time", net.inputs]
    inputs = [helper.make_tensor_value_info("u", TensorProto.FLOAT, raw)]
    if with_lengths:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, ["batch"]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)]
    built = helper.make_model(
        helper.make_graph(graph.nodes, "gradsieve", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="gradsieve",
        ir_version=IR_VERSION,
    )
    helper.set_model_props(built, _properties(model))
    onnx.checker.check_model(built, full_check=True)
    content: bytes = built.SerializeToString()
    return content


class _Graph:
    """Nodes and constants in the making."""

    def __init__(self, helper: Any, numpy_helper: Any) -> None:
        self._helper, self._numpy = helper, numpy_helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, values: Array) -> str:
        array = np.ascontiguousarray(values, dtype=np.float32)
        self.constants.append(self._numpy.from_array(array, name))
        return name

    def integers(self, name: str, values: list[int]) -> str:
        self.constants.append(self._numpy.from_array(np.array(values, dtype=np.int64), name))
        return name

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        result = f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operation, list(inputs), [result], **attributes))
        return result


def _properties(model: Model) -> dict[str, str]:
    properties = {"features": json.dumps(model.features)}
    if model.classes is not None:
        properties["classes"] = json.dumps(model.classes)
    return properties


def check_onnx(content: bytes, model: Model, data: Sequences | None = None) -> float:
    """Run the file with onnxruntime against the model; the largest difference, or an error.

    Without data it runs on random sequences of three lengths, in the units of the scaling.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtra("checking an ONNX file", "onnx") from error
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    takes_lengths = "lengths" in {value.name for value in session.get_inputs()}
    data = data or _random(model, equal=not takes_lengths)
    expected = model.outputs(data)
    largest = 0.0
    for number in range(data.count):
        rows = data.steps_of([number])
        feed: dict[str, Array] = {"u": data.values[rows].astype(np.float32)[None]}
        if takes_lengths:
            feed["lengths"] = np.array([len(rows)], dtype=np.int32)
        y = session.run(["y"], feed)[0][0]
        wanted = expected[rows if model.per_step else number]
        unit = 1.0 if model.scaling.target_spread is None else model.scaling.target_spread
        largest = max(largest, float(np.abs((y - wanted) / unit).max()))
    if not largest <= TOLERANCE:
        raise GradsieveError(
            f"onnxruntime gives other outputs than the network, by {largest:.1e} where "
            f"{TOLERANCE:.0e} is allowed; the inputs may be too large for float32"
        )
    return largest


def _random(model: Model, equal: bool) -> Sequences:
    generator = np.random.Generator(np.random.PCG64(0))
    lengths = [20, 20, 20] if equal else [1, 20, 50]
    sequences = [
        generator.standard_normal((length, model.net.inputs)) * model.scaling.spread
        + model.scaling.mean
        for length in lengths
    ]
    count = sum(lengths) if model.per_step else len(lengths)
    if model.classes is not None:
        return from_arrays(sequences, np.zeros(count), model.classes, model.per_step)
    return from_arrays(sequences, np.zeros((count, model.net.outputs)), per_step=model.per_step)
