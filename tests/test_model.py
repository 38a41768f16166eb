"""A model: a network with its scaling and names, in one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from gradsieve.data import Scaling, Sequences, from_arrays
from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.flow import predict
from gradsieve.model import Model, r_squared
from gradsieve.network import SRN


def model_and_data(per_step: bool = False) -> tuple[Model, Sequences]:
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 9, 300)
    sequences = [generator.standard_normal((length, 2)) * 7 + 3 for length in lengths]
    count = int(lengths.sum()) if per_step else len(lengths)
    data = from_arrays(sequences, np.arange(count) % 2, ("no", "yes"), per_step)
    net = SRN.random(2, 6, 2, variance=0.3, seed=0)
    return Model(
        net,
        scaling=Scaling.of(data),
        classes=data.classes,
        features=data.features,
        per_step=per_step,
    ), data


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("engine", ["native", "reference"])
def test_outputs_are_those_of_each_sequence_alone(per_step: bool, engine: str) -> None:
    model, data = model_and_data(per_step)
    found = model.outputs(data, engine)  # type: ignore[arg-type]
    for n in (0, 17, 299):
        u = model.scaling.inputs(data.values[data.steps_of([n])])[:, None]
        alone = predict(model.net, u, "reference", per_step=per_step)
        rows = data.steps_of([n]) if per_step else [n]
        np.testing.assert_allclose(found[rows], alone.reshape(-1, 2), atol=1e-5)


def test_a_model_comes_back_from_its_file(tmp_path: Path) -> None:
    model, data = model_and_data()
    model.save(tmp_path / "net.safetensors")
    again = Model.load(tmp_path / "net.safetensors")
    np.testing.assert_array_equal(again.outputs(data), model.outputs(data))
    assert (again.classes, again.features) == (model.classes, model.features)


def test_a_plain_network_is_a_model_without_scaling(tmp_path: Path) -> None:
    SRN.random(2, 4, 3).save(tmp_path / "net.safetensors")
    model = Model.load(tmp_path / "net.safetensors")
    assert model.classes == ("0", "1", "2")
    assert model.scaling.mean.tolist() == [0, 0]


def test_damaged_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    for damaged in (5, {}, {"classes": ["a"], "features": ["x", "y"], "scaling": {}}):
        SRN.random(2, 4, 2).save(path, {"model": damaged})
        with pytest.raises(InvalidFile, match="damaged"):
            Model.load(path)


def test_classes_are_matched_by_name_and_unknown_ones_are_refused() -> None:
    model, data = model_and_data()
    turned = Sequences(data.values, data.lengths, 1 - data.targets, False, ("yes", "no"))
    assert model.score(turned) == model.score(data)
    foreign = Sequences(data.values, data.lengths, data.targets, False, ("no", "perhaps"))
    with pytest.raises(InvalidArgument, match="class 'perhaps'; the network knows no, yes"):
        model.score(foreign)


def test_data_of_another_width_is_refused() -> None:
    model, _ = model_and_data()
    with pytest.raises(InvalidArgument, match=r"the data has 1 inputs .* takes 2"):
        model.outputs(from_arrays([[[1.0]]], [0], ("no", "yes")))


def test_r_squared_is_one_for_truth_and_zero_for_the_mean() -> None:
    targets = np.array([[1.0, 5], [2, 7], [6, 0]])
    assert r_squared(targets, targets) == 1
    assert r_squared(np.broadcast_to(targets.mean(axis=0), (3, 2)), targets) == pytest.approx(0)


@given(
    exponent=st.integers(-1020, 1000),
    offset=st.floats(-100, 100),
    seed=st.integers(0, 2**32),
    error=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
)
def test_r_squared_does_not_depend_on_the_unit(exponent, offset, seed, error) -> None:
    rng = np.random.default_rng(seed)
    targets = rng.normal(size=(7, 2)) + offset
    outputs = targets + error * rng.normal(size=(7, 2))
    expected = r2_score(targets, outputs)
    assert r_squared(outputs, targets) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    unit = 2.0**exponent  # exact: nothing but the unit changes
    assert r_squared(outputs * unit, targets * unit) == r_squared(outputs, targets)


@given(value=st.floats(allow_nan=False, allow_infinity=False), count=st.integers(1, 9))
def test_r_squared_of_a_constant_target_is_one_where_it_is_met_and_else_zero(value, count) -> None:
    targets = np.full((count, 1), value)
    assert r_squared(targets, targets) == 1
    assert r_squared(np.nextafter(targets, 0 if value else 1), targets) == 0


def test_an_error_beyond_floats_is_no_nan() -> None:
    targets = np.array([[1e-200], [2e-200]])
    assert r_squared(np.full((2, 1), 1e300), targets) == -np.inf
