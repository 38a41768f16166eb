"""Thousands of damaged network files: with a checksum each is refused, without one it is usable."""

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.data import Scaling
from gradsieve.model import Model
from mutants import mutants, put, right_or_refused

NET = gs.SRN.random(2, 3, 2, output="softmax", seed=1)
MODEL = Model(
    NET,
    scaling=Scaling(np.array([1.0, 2.0]), np.array([0.5, 3.0])),
    classes=("left", "right"),
    features=("x", "y"),
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.safetensors"


def test_mutants_of_a_network(path, capfd):
    NET.save(path, {"note": "é"})
    for content in mutants(path.read_bytes(), 4000):
        put(path, content)
        assert not right_or_refused(lambda: gs.SRN.load_with_extra(path), lambda found: False)
    assert capfd.readouterr() == ("", "")


def without_checksum(sealed):
    """The same file as an older version wrote it."""
    start = sealed.index(b'"sha256":"')
    end = start + len(b'"sha256":"') + 64 + len(b'",')
    size = int.from_bytes(sealed[:8], "little") - (end - start)
    return size.to_bytes(8, "little") + sealed[8:start] + sealed[end:]


def test_mutants_of_a_model_without_a_checksum_can_be_used_or_are_refused(path, capfd):
    data = gs.data.from_arrays([np.ones((4, 2)), np.zeros((3, 2))], [0, 1], ("left", "right"))
    MODEL.save(path)
    old = without_checksum(path.read_bytes())
    path.write_bytes(old)
    assert Model.load(path).score(data) == MODEL.score(data)
    for content in mutants(old, 3000):
        put(path, content)
        right_or_refused(lambda: Model.load(path).score(data), lambda found: 0 <= found <= 1)
    assert capfd.readouterr() == ("", "")
