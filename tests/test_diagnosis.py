"""A diagnosis says what the network's matrices make true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradsieve.change import q_factor
from gradsieve.data import Scaling, Sequences, from_arrays
from gradsieve.diagnosis import diagnose, draw, typical_horizon
from gradsieve.errors import InvalidArgument
from gradsieve.flow import backpropagate
from gradsieve.model import Model
from gradsieve.network import SRN


def rotation(radius: float, hidden: int = 8) -> Model:
    """Linear regime (tiny weights elsewhere), so that each step back multiplies by `radius`."""
    matrix, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((hidden, hidden)))
    net = SRN(
        w_in=np.full((1, hidden), 1e-5),
        w_rec=radius * matrix,
        b=np.zeros(hidden),
        w_out=np.ones((hidden, 2)) * [1, -1],
        b_out=np.zeros(2),
    )
    return Model.of(net)


@pytest.mark.parametrize("radius", [0.8, 0.97, 1.0])
def test_an_orthogonal_network_has_the_factor_and_reach_of_its_radius(radius: float) -> None:
    found = diagnose(rotation(radius), steps=60)
    assert found.factor == pytest.approx(radius, rel=1e-3)
    assert found.spectral_radius == pytest.approx(radius)
    assert found.largest_singular_value == pytest.approx(radius)
    expected = min(59, int(np.log(0.1) / np.log(radius))) if radius < 1 else 59
    assert found.reach == expected
    assert found.condition == ("in range" if radius**59 > 0.1 else "vanished")
    assert found.saturated == 0


DIP = [0.3] * 4 + [1 / 0.3] * 4 + [1.0] * 12  # edges of a gradient that falls and comes back


def ring(edges: list[float]) -> Model:
    """Each step back moves the gradient on by one unit and multiplies it by that unit's edge."""
    hidden = len(edges)
    net = SRN(
        w_in=np.full((1, hidden), 1e-5),
        w_rec=np.roll(np.diag(edges), 1, axis=0),
        b=np.zeros(hidden),
        w_out=np.eye(hidden)[:, :1] * [[1, -1]],
        b_out=np.zeros(2),
    )
    return Model.of(net)


def of_two_lengths(short: int, long: int) -> Sequences:
    """Ten sequences of each."""
    generator = np.random.default_rng(2)
    return from_arrays(
        [generator.standard_normal((length, 1)) for length in [short] * 10 + [long] * 10],
        generator.integers(0, 2, 20),
        ("0", "1"),
    )


def test_a_gradient_that_comes_back_reaches_as_far_as_it_comes() -> None:
    found = diagnose(ring(DIP), steps=19)
    assert found.log10_ratio[4] == pytest.approx(4 * np.log10(0.3), abs=1e-3)
    assert found.reach == 18
    assert "down to 0.8% of its size, and comes back" in found.verdict
    lost = diagnose(ring(DIP), steps=5)
    assert (lost.reach, lost.condition) == (1, "vanished")


def test_what_few_long_sequences_keep_does_not_deny_that_most_lose_it() -> None:
    found = diagnose(ring(DIP), of_two_lengths(5, 12))
    assert (found.reach, found.horizon, found.condition) == (11, 4, "vanished")
    assert "Over the 4 steps that nearly all sequences have it vanishes" in found.verdict


def test_an_exploding_network_is_called_so() -> None:
    found = diagnose(rotation(1.1), steps=60)
    assert found.condition == "exploded"
    assert found.reach == 59
    assert "explodes" in found.verdict


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_Q_is_the_papers_where_lengths_are_equal(engine: str) -> None:
    generator = np.random.default_rng(1)
    data = from_arrays(
        list(generator.standard_normal((30, 25, 2))), generator.integers(0, 3, 30), ("a", "b", "c")
    )
    net = SRN.random(2, 12, 3, variance=0.05, seed=0)
    model = Model(net, Scaling.of(data), data.classes, data.features)
    found = diagnose(model, data, engine=engine)  # type: ignore[arg-type]
    u, t, _ = model.scaling.scaled(data).padded()
    assert pytest.approx(q_factor(backpropagate(net, u, t, "reference")), abs=1e-4) == found.Q
    assert found.score == model.score(data)


def test_short_sequences_do_not_make_the_gradient_look_vanished() -> None:
    found = diagnose(rotation(1.0), of_two_lengths(5, 40))
    assert found.reach == 39
    assert max(abs(value or 0) for value in found.log10_ratio) < 0.01


def test_few_long_sequences_are_looked_at_rather_than_all_of_memory() -> None:
    generator = np.random.default_rng(0)
    sequences = [generator.standard_normal((length, 1)) for length in [100_000, *([5] * 300)]]
    data = from_arrays(sequences, np.arange(301) % 2, ("0", "1"))
    assert diagnose(rotation(0.9, hidden=8), data).sequences == 25


def test_the_typical_horizon_is_what_nine_in_ten_have() -> None:
    assert typical_horizon(np.array([5] + [30] * 19)) == 29
    assert typical_horizon(np.array([1])) == 0


def test_an_entirely_lost_gradient_is_vanished_and_not_an_error() -> None:
    model = rotation(0.0)
    found = diagnose(model, steps=5)
    assert (found.Q, found.factor, found.reach, found.condition) == (None, None, 0, "vanished")
    assert "reaches 0 of 4 steps" in found.verdict


def test_saturation_is_named_as_the_cause() -> None:
    net = SRN.random(1, 8, 2, variance=4, seed=0)
    found = diagnose(Model.of(net), steps=40)
    assert found.saturated > 0.5
    if found.condition == "vanished":
        assert "saturated" in found.verdict


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_picture_is_written(tmp_path: Path, ending: str) -> None:
    model = rotation(0.9)
    path = tmp_path / f"picture{ending}"
    draw(diagnose(model, steps=20), model.net, path)
    assert path.stat().st_size > 2000


def test_an_unknown_picture_format_is_refused(tmp_path: Path) -> None:
    model = rotation(0.9)
    with pytest.raises(InvalidArgument, match=r"ends with \.png"):
        draw(diagnose(model, steps=20), model.net, tmp_path / "picture.gif")
