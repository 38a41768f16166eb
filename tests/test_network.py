"""The network: five views of one vector, its initial values, its file."""

import copy
import json
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save as to_safetensors

import gradsieve as gs
from gradsieve.model import Model
from gradsieve.network import FIELDS, FORMAT, field_shapes

SIZES = st.tuples(st.integers(1, 4), st.integers(1, 7), st.integers(1, 4))


@given(sizes=SIZES, seed=st.integers(0, 2**32))
def test_fields_are_views_of_flat_in_their_order(sizes, seed):
    net = gs.SRN.random(*sizes, seed=seed)
    assert np.array_equal(net.flat, np.concatenate([net.fields()[name].ravel() for name in FIELDS]))
    net.flat[:] = np.arange(net.flat.size)
    assert [value.ravel()[0] for value in net.fields().values()] == list(
        np.cumsum([0, *(np.prod(shape) for shape in field_shapes(*sizes))])[:-1]
    )
    net.w_rec[0, 0] = -1
    assert -1 in net.flat


def test_sigma_is_the_variance_so_that_a_hundred_units_at_0_01_are_at_the_edge():
    net = gs.SRN.random(6, 100, 4, variance=0.01, seed=3)
    assert net.w_rec.std() == pytest.approx(0.1, rel=0.02)
    assert np.abs(np.linalg.eigvals(net.w_rec)).max() == pytest.approx(1.0, abs=0.1)
    assert not net.b.any()
    assert not net.b_out.any()


def test_a_seed_decides_every_weight():
    first, same, other = (gs.SRN.random(3, 5, 2, seed=seed) for seed in (7, 7, 8))
    assert np.array_equal(first.flat, same.flat)
    assert not np.array_equal(first.flat, other.flat)


def test_a_copy_and_another_dtype_share_nothing():
    net = gs.SRN.random(3, 5, 2, output="linear", seed=7)
    for other in (net.copy(), net.astype(np.float64), net.astype(np.float32)):
        other.flat[:] = 0
        assert other.output == "linear"
    assert net.flat.any()


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle-{protocol}": lambda value, protocol=protocol: pickle.loads(
            pickle.dumps(value, protocol)
        )
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}


def holders():
    """Everything public that holds weights, each with the way to them."""
    net = gs.SRN.random(2, 3, 2, output="linear", seed=3)
    u, t = np.ones((4, 2, 2), np.float32), np.zeros((2, 2), np.float32)
    yield "Weights", net.like(net.flat.copy()), lambda value: value
    yield "SRN", net, lambda value: value
    yield "float64", net.astype(np.float64), lambda value: value
    yield "Model", Model.of(net), lambda value: value.net
    yield "nested", {"nets": [net, net]}, lambda value: value["nets"][1]
    flow = gs.backpropagate(net, u, t, engine="reference")
    yield "gradient", flow, lambda value: value.gradient
    yield "flow", flow, lambda value: value.net
    yield "kernel's gradient", gs.backpropagate(net, u, t).gradient, lambda value: value


@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize(("held", "weights"), [(h, w) for _, h, w in holders()],
                         ids=[name for name, *_ in holders()])  # fmt: skip
def test_fields_of_every_copy_are_views_of_its_own_flat(held, weights, way):
    before = weights(held)
    after = weights(way(held))
    assert type(after) is type(before)
    assert (after.dtype, getattr(after, "output", 0)) == (
        before.dtype,
        getattr(before, "output", 0),
    )
    assert after.flat.tobytes() == before.flat.tobytes()
    for name, shape in zip(FIELDS, field_shapes(after.inputs, after.hidden, after.outputs),
                           strict=True):  # fmt: skip
        field = getattr(after, name)
        assert field.shape == shape
        assert np.shares_memory(field, after.flat)
    if way is not copy.copy:
        assert not np.shares_memory(after.flat, before.flat)


@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
def test_what_is_written_to_a_copy_is_what_it_saves_and_exports(tmp_path, way):
    net = way(gs.SRN.random(2, 3, 2, seed=1))
    net.flat[:] = np.arange(net.flat.size)
    net.save(tmp_path / "net.safetensors")
    assert np.array_equal(gs.SRN.load(tmp_path / "net.safetensors").flat, np.arange(net.flat.size))


@given(sizes=SIZES, name=st.sampled_from(FIELDS))
def test_an_assigned_field_is_part_of_flat(sizes, name):
    net = gs.SRN.random(*sizes, seed=0)
    setattr(net, name, np.full(getattr(net, name).shape, 7.0))
    assert (net.flat == 7).sum() == getattr(net, name).size
    net.flat = np.arange(net.flat.size)
    assert getattr(net, name).ravel()[0] in np.arange(net.flat.size)
    assert np.shares_memory(getattr(net, name), net.flat)
    with pytest.raises(ValueError, match="broadcast"):
        setattr(net, name, np.ones(net.flat.size + 1))


@given(
    variance=st.floats(0, 1e308),
    gain=st.floats(0, 1e308),
    bias_spread=st.floats(0, 1e308),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_random_network_is_finite_or_refused(variance, gain, bias_spread, dtype):
    try:
        net = gs.SRN.random(
            2, 3, 2, variance=variance, gain=gain, bias_spread=bias_spread, dtype=dtype
        )
    except gs.InvalidArgument:
        assert max(variance, gain, bias_spread) > 1e30
    else:
        assert np.isfinite(net.flat).all()


def test_weights_that_float32_cannot_hold_are_not_rounded_to_infinity():
    net = gs.SRN.random(2, 3, 2, variance=1e100, dtype=np.float64)
    with pytest.raises(gs.InvalidArgument, match="exceed what float32 holds"):
        net.astype(np.float32)
    for dtype in (np.float16, np.int32, bool):
        with pytest.raises(gs.InvalidArgument, match="it may be float32 or float64"):
            net.astype(dtype)


@given(
    sizes=SIZES,
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([np.float32, np.float64]),
    output=st.sampled_from(["softmax", "linear"]),
    extra=st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=3),
)
def test_saving_and_loading_gives_the_same_bits(
    tmp_path_factory, sizes, seed, dtype, output, extra
):
    path = tmp_path_factory.mktemp("nets") / "net.safetensors"
    net = gs.SRN.random(*sizes, output=output, seed=seed, dtype=dtype)
    net.save(path, extra)
    loaded, stored = gs.SRN.load_with_extra(path)
    assert (loaded.output, loaded.dtype, stored) == (output, net.dtype, extra)
    assert loaded.flat.tobytes() == net.flat.tobytes()
    assert [value.shape for value in loaded.fields().values()] == list(field_shapes(*sizes))


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "net.safetensors"
    gs.SRN.random(2, 3, 2, seed=1).save(path)
    return path


def test_every_prefix_of_a_network_file_is_refused(saved):
    whole = saved.read_bytes()
    for length in range(len(whole)):
        saved.write_bytes(whole[:length])
        with pytest.raises(gs.InvalidFile, match=str(saved)):
            gs.SRN.load(saved)


def test_any_damaged_byte_is_refused_or_leaves_a_finite_network(saved):
    whole = saved.read_bytes()
    rng = np.random.default_rng(0)
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        saved.write_bytes(damaged)
        try:
            net = gs.SRN.load(saved)
        except gs.InvalidFile:
            continue
        assert np.isfinite(net.flat).all()


@given(content=st.binary(max_size=300))
def test_random_bytes_are_refused(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("nets") / "net.safetensors"
    path.write_bytes(content)
    with pytest.raises(gs.InvalidFile):
        gs.SRN.load(path)


def test_a_pickle_is_refused_and_never_runs(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    path = tmp_path / "net.safetensors"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(gs.InvalidFile):
        gs.SRN.load(path)
    assert not (tmp_path / "sprung").exists()


def file_with(dtype, size, metadata=None):
    """A safetensors file of zeros in this type, written by hand."""
    header = {"__metadata__": metadata or {"format": FORMAT, "output": "softmax"}}
    offset = 0
    for name, shape in zip(FIELDS, field_shapes(2, 3, 2), strict=True):
        end = offset + int(np.prod(shape)) * size
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(offset)


@pytest.mark.parametrize(("dtype", "size"), [("BF16", 2), ("F8_E4M3", 1), ("BOOL", 1), ("C64", 8)])
def test_numbers_of_a_foreign_type_are_refused(tmp_path, dtype, size):
    path = tmp_path / "net.safetensors"
    path.write_bytes(file_with(dtype, size))
    with pytest.raises(gs.InvalidFile, match="type"):
        gs.SRN.load(path)


def whole_fields(**changed):
    return gs.SRN.random(2, 3, 2).fields() | changed


@pytest.mark.parametrize(
    ("fields", "metadata"),
    [
        (whole_fields(), None),
        (whole_fields(), {"format": "another"}),
        (whole_fields(), {"format": FORMAT}),
        (whole_fields(), {"format": FORMAT, "output": "sigmoid"}),
        (whole_fields(), {"format": FORMAT, "output": "linear", "extra": "{"}),
        (whole_fields(), {"format": FORMAT, "output": "linear", "extra": "[1]"}),
        (whole_fields(), {"format": FORMAT, "output": "linear", "extra": "9" * 5000}),
        (whole_fields(), {"format": FORMAT, "output": "linear", "extra": "[" * 100_000}),
        (whole_fields(b=np.ones(4)), {"format": FORMAT, "output": "linear"}),
        (whole_fields(b=np.full(3, np.nan)), {"format": FORMAT, "output": "linear"}),
        ({"w_in": np.ones((2, 3))}, {"format": FORMAT, "output": "linear"}),
    ],
)
def test_a_foreign_safetensors_file_is_refused(tmp_path, fields, metadata):
    path = tmp_path / "net.safetensors"
    path.write_bytes(to_safetensors(fields, metadata))
    with pytest.raises(gs.InvalidFile, match=str(path)):
        gs.SRN.load(path)


def test_a_missing_file_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(gs.InvalidFile, match=str(path)):
            gs.SRN.load(path)


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"w_rec": np.ones((3, 4))}, "w_rec"),
        ({"b": np.ones(2)}, "b has shape"),
        ({"b_out": np.ones((2, 1))}, "b_out"),
        ({"w_in": np.ones((0, 3))}, "w_in"),
        ({"w_out": np.array([["a", "b"]] * 3)}, "w_out"),
        ({"w_rec": np.ones((3, 3)) * 1j}, "w_rec"),
        ({"b": np.array([0.0, np.inf, 0.0])}, "NaN or infinity"),
        ({"output": "sigmoid"}, "'softmax' or 'linear'"),
    ],
)
def test_weights_that_do_not_fit_are_named(changed, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        gs.SRN(**(whole_fields() | changed))


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        ({"hidden": 0}, "hidden"),
        ({"inputs": -1}, "inputs"),
        ({"variance": -0.1}, "variance"),
        ({"variance": float("nan")}, "variance"),
        ({"output": "tanh"}, "output"),
        ({"gain": -1.0}, "gain"),
        ({"input_gain": float("inf")}, "input_gain"),
        ({"bias_spread": -0.5}, "bias_spread"),
        ({"start": "unit"}, "recurrent is 'unit'"),
        ({"recurrent": "identity"}, "it is given as start='identity'"),
        ({"varience": 0.1}, "no setting 'varience'; it has .*variance"),
        ({"start": gs.Start(), "variance": 0.1}, "variance can only be given beside a name"),
    ],
)
def test_a_random_network_that_cannot_be_is_refused(changed, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        gs.SRN.random(**({"inputs": 2, "hidden": 3, "outputs": 2} | changed))


def test_units_that_begin_bent_have_other_input_weights_and_biases_and_nothing_else():
    plain = gs.SRN.random(2, 400, 3, seed=4, dtype=np.float64)
    bent = gs.SRN.random(2, 400, 3, seed=4, dtype=np.float64, input_gain=16, bias_spread=0.5)
    assert np.array_equal(bent.w_in, 16 * plain.w_in)
    assert bent.b.std() == pytest.approx(0.5, rel=0.1)
    for name in ("w_rec", "w_out", "b_out"):
        assert np.array_equal(getattr(bent, name), getattr(plain, name))
