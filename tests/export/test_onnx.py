"""The ONNX file: one standard RNN node that onnxruntime runs to the same outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from exported_models import model_and_data

from gradsieve.data import Scaling, Sequences, read
from gradsieve.errors import GradsieveError
from gradsieve.export import check_onnx, to_onnx
from gradsieve.model import Model
from gradsieve.network import SRN, Array

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def run(content: bytes, **feed: Array) -> Array:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["y"], feed)[0])


def padded_at_end(data: Sequences) -> Array:
    u = np.zeros((data.count, int(data.lengths.max()), data.inputs), dtype=np.float32)
    for n, length in enumerate(data.lengths):
        u[n, :length] = data.values[data.steps_of([n])]
    return u


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("per_step", [False, True])
def test_one_batch_of_unequal_lengths_gives_pythons_outputs(kind: str, per_step: bool) -> None:
    model, data = model_and_data(kind, per_step)
    y = run(to_onnx(model), u=padded_at_end(data), lengths=data.lengths.astype(np.int32))
    expected = model.outputs(data, "reference")
    if per_step:
        y = np.concatenate([y[n, :length] for n, length in enumerate(data.lengths)])
    unit = 1.0 if model.scaling.target_spread is None else model.scaling.target_spread
    np.testing.assert_allclose(y / unit, expected / unit, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("batch", "steps"), [(1, 1), (1, 33), (7, 5)])
def test_any_batch_and_length_without_lengths(batch: int, steps: int) -> None:
    model, data = model_and_data(lengths=(steps,) * batch)
    assert model.equal_lengths
    y = run(to_onnx(model), u=padded_at_end(data))
    np.testing.assert_allclose(y, model.outputs(data, "reference"), rtol=0, atol=1e-5)


def test_the_file_has_one_rnn_node_and_names_classes_and_features() -> None:
    model, _ = model_and_data()
    loaded = onnx.load_from_string(to_onnx(model))
    assert [node.op_type for node in loaded.graph.node].count("RNN") == 1
    properties = {entry.key: entry.value for entry in loaded.metadata_props}
    assert tuple(json.loads(properties["classes"])) == model.classes
    assert tuple(json.loads(properties["features"])) == model.features


def test_the_check_passes_a_true_file_and_refuses_another_networks() -> None:
    model, data = model_and_data()
    other, _ = model_and_data(seed=1)
    assert check_onnx(to_onnx(model), model) <= 1e-5
    assert check_onnx(to_onnx(model), model, data) <= 1e-5
    with pytest.raises(GradsieveError, match="other outputs"):
        check_onnx(to_onnx(other), model)


def test_real_sequences() -> None:
    datasets = pytest.importorskip("aeon.datasets")
    data = read(Path(datasets.__file__).parent / "data/GunPoint/GunPoint_TRAIN.ts")
    net = SRN.random(data.inputs, 16, data.outputs, variance=1 / 16, seed=3)
    model = Model(
        net,
        scaling=Scaling.of(data),
        classes=data.classes,
        features=data.features,
        equal_lengths=True,
    )
    assert check_onnx(to_onnx(model), model, data) <= 1e-5
