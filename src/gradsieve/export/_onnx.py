"""ONNX: scaling, one standard recurrent node a layer, read-out; whole sequences or step by step.

A whole file takes `u` (batch, time, inputs), raw, and where wanted `lengths` (batch,) int32 for
sequences that begin at step 0 and are padded at their end. Its output `y` is (batch, outputs) after
the last step of each, or (batch, time, outputs) for a network with an answer at every step.

A streaming file takes one step, `u` (batch, inputs), and the state that the last step gave: `h`
(layers, batch, hidden) and with an LSTM `c`, all zero at first. Where missing inputs count as
their last value it also takes `last` (batch, inputs), all NaN at first. It gives `y` and the state
for the next step: `next_h`, `next_c`, `next_last`.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np

from gradsieve.errors import InvalidArgument, needs_extra, one_of
from gradsieve.export._footprint import WeightFormat, is_identity
from gradsieve.export._int8 import Int8Rows
from gradsieve.export._portable import Cell, Layer, Portable, portable
from gradsieve.model import Model
from gradsieve.network import Array

OPSET = 17
IR_VERSION = 8  # the one of opset 17, so that a runtime of its time reads the file
NODES: dict[Cell, str] = {"tanh": "RNN", "relu": "RNN", "gru": "GRU", "lstm": "LSTM"}
ATTRIBUTES: dict[Cell, dict[str, Any]] = {
    "tanh": {"activations": ["Tanh"]},
    "relu": {"activations": ["Relu"]},
    "gru": {"linear_before_reset": 1},
    "lstm": {},
}
ORDER: dict[Cell, tuple[int, ...]] = {  # ONNX's order of gates, in PyTorch's numbers
    "tanh": (0,),
    "relu": (0,),
    "gru": (1, 0, 2),
    "lstm": (0, 3, 1, 2),
}
Shape = list[str | int | None]


def to_onnx(
    model: Model | Portable,
    lengths: bool | None = None,
    weights: WeightFormat = "float32",
    streaming: bool = False,
) -> bytes:
    """The file's bytes.

    Args:
        model: the network.
        lengths: whether a whole file takes lengths; as the network was trained, by default.
        weights: "int8" holds matrices in eight bits with a scale a row; arithmetic stays float32.
        streaming: one step at a time, with the state as input and output.
    """
    with needs_extra("exporting to ONNX", "onnx"):
        import onnx
    one_of("weights", weights, get_args(WeightFormat))
    network = portable(model)
    if streaming and lengths:
        raise InvalidArgument("lengths is True; a streaming file takes one step at a time")
    if network.missing == "last" and not streaming:
        raise InvalidArgument(
            "missing is 'last', which an ONNX file over whole sequences cannot do; choose streaming"
        )
    taken = not streaming and (not network.equal_lengths if lengths is None else lengths)
    graph = _Graph(onnx, network, weights == "int8", streaming, taken)
    graph.build()
    built = onnx.helper.make_model(
        onnx.helper.make_graph(
            graph.nodes, "gradsieve", graph.inputs, graph.outputs, graph.constants
        ),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="gradsieve",
        ir_version=IR_VERSION,
    )
    onnx.helper.set_model_props(built, _properties(network))
    onnx.checker.check_model(built, full_check=True)
    content: bytes = built.SerializeToString()
    return content


class _Graph:
    """Nodes, constants, inputs and outputs in the making."""

    def __init__(
        self, onnx: Any, network: Portable, int8: bool, streaming: bool, lengths: bool
    ) -> None:
        self.onnx, self.network = onnx, network
        self.int8, self.streaming, self.lengths = int8, streaming, lengths
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.ends: dict[str, list[str]] = {"h": [], "c": []} if streaming else {}

    def build(self) -> None:
        network, time = self.network, [] if self.streaming else ["time"]
        here = self._prepared(self.value(self.inputs, "u", ["batch", *time, network.inputs]))
        if self.lengths:
            self.value(self.inputs, "lengths", ["batch"], self.onnx.TensorProto.INT32)
        here = (
            self.add("Unsqueeze", here, self.integers("first", [0]))
            if self.streaming
            else self.add("Transpose", here, perm=[1, 0, 2])
        )
        if self.streaming:
            self._states()
        for number, layer in enumerate(network.layers):
            here, last = self._layer(number, layer, here)
        every = network.per_step and not self.streaming
        answer: Shape = ["batch", *(time if every else []), network.outputs_each]
        here = self._answer(
            self.add("Transpose", here, perm=[1, 0, 2])
            if every
            else self.add("Squeeze", last, self.integers("direction", [0]))
        )
        self._give("y", here, answer)
        shape: Shape = [len(network.layers), "batch", network.hidden]
        for name, ends in self.ends.items():
            if ends:
                self._give(f"next_{name}", self.add("Concat", *ends, axis=0), shape)

    def _prepared(self, here: str) -> str:
        """Inputs without gaps, in the units of the network."""
        network, mean = self.network, self.network.scaling.mean
        if network.missing == "mean":
            filled = self.constant("filled", mean)
            here = self.add("Where", self.add("IsNaN", here), filled, here)
        elif network.missing == "last":
            shape: Shape = ["batch", network.inputs]
            last = self.value(self.inputs, "last", shape)
            first = self.constant("filled", mean)
            known = self.add("Where", self.add("IsNaN", last), first, last)
            here = self.add("Where", self.add("IsNaN", here), known, here)
            self._give("next_last", here, shape)
        if is_identity(network):
            return here
        here = self.add("Sub", here, self.constant("mean", mean))
        return self.add("Div", here, self.constant("spread", network.scaling.spread))

    def _states(self) -> None:
        network = self.network
        shape: Shape = [len(network.layers), "batch", network.hidden]
        if network.cell != "lstm":
            del self.ends["c"]
        for name in self.ends:
            self.value(self.inputs, name, shape)

    def _layer(self, number: int, layer: Layer, here: str) -> tuple[str, str]:
        """The layer's states, (time, batch, hidden), and its last one, (1, batch, hidden)."""
        cell, hidden = self.network.cell, self.network.hidden
        order = np.concatenate([np.arange(hidden) + gate * hidden for gate in ORDER[cell]])
        biases = np.concatenate([layer.b[order], layer.recurrent_bias[order]])
        begins = [self._slice(name, number) for name in self.ends]
        taken = [
            here,
            self.matrix(f"w_in{number}", layer.w_ih[order][None]),
            self.matrix(f"w_rec{number}", layer.w_hh[order][None]),
            self.constant(f"b{number}", biases[None]),
            "lengths" if self.lengths else "",
            *begins,
        ]
        given = [f"states{number}", f"h{number}", *([f"c{number}"] if cell == "lstm" else [])]
        self.nodes.append(
            self.onnx.helper.make_node(
                NODES[cell], taken, given, hidden_size=hidden, **ATTRIBUTES[cell]
            )
        )
        for name in self.ends:
            self.ends[name].append(f"{name}{number}")
        return self.add("Squeeze", given[0], self.integers(f"directions{number}", [1])), given[1]

    def _slice(self, name: str, number: int) -> str:
        """One layer's part of a state."""
        ends = [self.integers(f"{name}{number}_{end}", [number + end]) for end in (0, 1)]
        return self.add("Slice", name, *ends, self.integers(f"{name}{number}_axis", [0]))

    def _answer(self, here: str) -> str:
        network, scaling = self.network, self.network.scaling
        w_out = self.add("Transpose", self.matrix("w_out", network.w_out), perm=[1, 0])
        here = self.add("MatMul", here, w_out)
        here = self.add("Add", here, self.constant("b_out", network.b_out))
        if network.output == "softmax":
            return self.add("Softmax", here, axis=-1)
        if scaling.target_mean is None or scaling.target_spread is None:
            return here
        here = self.add("Mul", here, self.constant("target_spread", scaling.target_spread))
        return self.add("Add", here, self.constant("target_mean", scaling.target_mean))

    def _give(self, name: str, here: str, shape: Shape) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [here], [name]))
        self.value(self.outputs, name, shape)

    def value(self, among: list[Any], name: str, shape: Shape, kind: Any = None) -> str:
        kind = kind or self.onnx.TensorProto.FLOAT
        among.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, name: str, values: Array) -> str:
        return self._store(name, np.ascontiguousarray(values, dtype=np.float32))

    def integers(self, name: str, values: list[int]) -> str:
        return self._store(name, np.array(values, dtype=np.int64))

    def matrix(self, name: str, values: Array) -> str:
        """A matrix, (rows, columns) or (1, rows, columns): in float32, or int8 with its scales."""
        if not self.int8:
            return self.constant(name, values)
        rows = Int8Rows.of(values.reshape(-1, values.shape[-1]))
        q = self._store(f"{name}_int8", rows.q.reshape(values.shape))
        scale = self.constant(f"{name}_scale", rows.scale)
        return self.add("DequantizeLinear", q, scale, axis=values.ndim - 2)

    def _store(self, name: str, array: Array) -> str:
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operation: str, *inputs: str, **attributes: Any) -> str:
        result = f"{operation.lower()}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(operation, list(inputs), [result], **attributes)
        self.nodes.append(node)
        return result


def _properties(network: Portable) -> dict[str, str]:
    properties = {"features": json.dumps(network.features), "missing": network.missing}
    if network.classes is not None:
        properties["classes"] = json.dumps(network.classes)
    return properties
