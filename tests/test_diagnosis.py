"""A diagnosis says what the network's matrices make true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.change import q_factor, slow_factor
from gradsieve.data import Scaling, Sequences, from_arrays
from gradsieve.diagnosis import (
    Advice,
    LayerReading,
    Symptom,
    diagnose,
    draw,
    judge,
    typical_horizon,
)
from gradsieve.diagnosis._measure import curves
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
def test_an_orthogonal_network_has_the_factor_of_its_radius(radius: float) -> None:
    found = diagnose(rotation(radius), steps=60)
    assert found.factor == pytest.approx(radius, rel=1e-3)
    assert found.spectral_radius == pytest.approx(radius)
    assert found.largest_singular_value == pytest.approx(radius)
    assert found.saturated == 0


@pytest.mark.parametrize("radius", [0.8, 0.9, 1.0])
def test_a_gradient_that_keeps_its_direction_reaches_as_far_as_its_radius_lets_it(
    radius: float,
) -> None:
    """w_rec = radius · 1: the slow gradient is Hann's mean of radius^lag, in closed form."""
    model = rotation(radius)
    model.net.w_rec[:] = radius * np.eye(8)
    found = diagnose(model, steps=60)
    expected = []
    for lag in range(60):
        steps = max(1, int(0.7 * (lag + 1)))
        weights = 1 - np.cos(2 * np.pi * (np.arange(steps) + 0.5) / steps)
        kept = (weights * radius ** (lag - np.arange(steps))).sum() / weights.sum()
        expected.append(-np.log10(kept))
    np.testing.assert_allclose(np.array(found.slow_Q_at, dtype=float), expected, atol=1e-4)
    assert found.reach == np.flatnonzero(np.array(expected) <= found.q_range[1])[-1]


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
    assert found.log10_ratio[18] == pytest.approx(0, abs=1e-3)
    assert found.reach == 18
    lost = diagnose(ring([0.1, *[1.0] * 19]), steps=5)
    assert lost.reach == 4


def test_what_few_long_sequences_keep_does_not_deny_that_most_lose_it() -> None:
    steep = [0.1] * 4 + [10.0] * 4 + [1.0] * 12
    found = diagnose(ring(steep), of_two_lengths(5, 12))
    assert (found.reach, found.horizon) == (11, 4)
    assert Symptom.VANISHING in found.judgement.symptoms
    assert "the slow gradient 4 steps back" in str(found)


def test_an_exploding_network_is_called_so() -> None:
    found = diagnose(rotation(1.15), of_two_lengths(60, 60))
    assert found.judgement.symptoms == (Symptom.EXPLODING, Symptom.GUESSING)
    assert found.reach == 59
    assert "Exploding" in str(found)
    assert str(Advice.CLIP) in str(found)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_slow_Q_is_the_sieves_at_every_lag(engine: str) -> None:
    data = of_two_lengths(25, 25)
    net = SRN.random(1, 12, 2, variance=0.05, seed=0)
    u, t, _ = data.padded()
    flow = backpropagate(net, u, t, engine)  # type: ignore[arg-type]
    ratio, slow = curves(flow, np.arange(25))
    for lag in range(1, 25):
        assert slow[lag] == pytest.approx(slow_factor(flow, lag), abs=1e-4)
        assert -ratio[lag] == pytest.approx(q_factor(flow, lag), abs=1e-4)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_Q_is_the_papers_where_lengths_are_equal(engine: str) -> None:
    generator = np.random.default_rng(1)
    data = from_arrays(
        list(generator.standard_normal((30, 25, 2))), generator.integers(0, 3, 30), ("a", "b", "c")
    )
    net = SRN.random(2, 12, 3, variance=0.05, seed=0)
    model = Model(net, scaling=Scaling.of(data), classes=data.classes, features=data.features)
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


def test_an_entirely_lost_gradient_is_vanishing_and_not_an_error() -> None:
    found = diagnose(rotation(0.0), of_two_lengths(5, 5))
    assert (found.Q, found.slow_Q, found.factor, found.reach) == (None, None, None, 0)
    assert Symptom.VANISHING in found.judgement.symptoms
    assert "reaches back over 0 of 4 steps" in str(found)
    assert "beyond measure smaller" in str(found)


def test_without_data_there_are_numbers_and_no_verdict_that_data_could_contradict() -> None:
    for radius in (0.0, 0.5, 1.0, 1.3):
        found = diagnose(rotation(radius), steps=40)
        assert found.judgement.symptoms == (Symptom.NOT_JUDGED,)
        assert found.judgement.advice == (Advice.DATA,)
        assert str(found).startswith("On white noise, the gradient reaches back")


def test_the_loss_is_compared_with_that_of_the_best_constant_guess() -> None:
    generator = np.random.default_rng(0)
    targets = generator.choice(3, 90, p=[0.6, 0.3, 0.1])
    data = from_arrays(list(generator.standard_normal((90, 6, 1))), targets, ("0", "1", "2"))
    shares = np.bincount(targets) / 90
    net = SRN.random(1, 4, 3, variance=0.1, seed=0)
    net.w_out[:] = 0
    net.b_out[:] = np.log(shares)  # the best constant guess itself
    found = diagnose(Model.of(net), data)
    assert found.constant_loss == pytest.approx(-(shares * np.log(shares)).sum())
    assert found.loss == pytest.approx(found.constant_loss, rel=1e-5)
    wanted = generator.normal(2, 3, (50, 2))
    values = from_arrays(list(generator.standard_normal((50, 6, 1))), wanted)
    regression = diagnose(Model.of(SRN.random(1, 4, 2, "linear")), values)
    expected = 0.5 * ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert regression.constant_loss == pytest.approx(expected, rel=1e-5)


RANGE = (-2.0, 1.5)
SEEN = {
    "fine": LayerReading(0.3, 99, 99),
    "lost": LayerReading(4.0, 12, 99),
    "gone": LayerReading(float("inf"), 0, 99),
    "burst": LayerReading(-3.0, 99, 99),
    "dead": LayerReading(float("nan"), 0, 99),
    "full": LayerReading(4.0, 3, 99, {"forget gate": 0.8}, "rnn/layer0"),
}


@pytest.mark.parametrize(
    ("layers", "losses", "symptoms", "advice"),
    [
        (["fine"], (None, None), {Symptom.HEALTHY}, {Advice.GO_ON}),
        (["fine"], (0.5, 1.0), {Symptom.HEALTHY}, {Advice.GO_ON}),
        (["fine"], (1.0, 1.0), {Symptom.GUESSING}, {Advice.ANOTHER_RATE}),
        (["lost"], (None, None), {Symptom.VANISHING}, {Advice.SIEVE}),
        (["lost"], (1.0, 1.0), {Symptom.VANISHING, Symptom.GUESSING}, {Advice.SIEVE}),
        (["lost"], (0.05, 1.0), {Symptom.LEARNED}, {Advice.NOTHING}),
        (["gone", "fine"], (None, None), {Symptom.VANISHING}, {Advice.SIEVE}),
        (["full"], (None, None), {Symptom.VANISHING, Symptom.SATURATED}, {Advice.UNSATURATE}),
        (["burst", "lost"], (None, None), {Symptom.VANISHING, Symptom.EXPLODING},
         {Advice.SIEVE, Advice.CLIP}),
        (["dead"], (None, None), {Symptom.NO_GRADIENT}, {Advice.CONNECT}),
        (["fine"], (1.0, 0.0), {Symptom.HEALTHY}, {Advice.GO_ON}),
    ],
)  # fmt: skip
def test_every_judgement_ends_in_what_to_try_next(
    layers: list[str],
    losses: tuple[float | None, float | None],
    symptoms: set[Symptom],
    advice: set[Advice],
) -> None:
    found = judge([SEEN[name] for name in layers], RANGE, *losses)
    assert set(found.symptoms) == symptoms
    assert set(found.advice) == advice
    assert str(found).endswith(str(found.advice[-1]))
    assert len(found.evidence) >= len(found.symptoms)


def test_evidence_names_the_layer_and_the_gate() -> None:
    said = str(judge([SEEN["full"]], RANGE))
    assert "rnn/layer0: 80% of forget gate at an end" in said
    assert "rnn/layer0: the slow gradient 99 steps back is 10^4.0 times smaller" in said


def test_following_the_advice_helps() -> None:
    """A network that stays at a guess because its gradient vanishes learns as it is advised to."""
    task = gs.tasks.temporal_order(length=40)
    recipe = gs.recipes.own_data().replaced(
        epochs=100, sizes=(4000, 500, 500), clip=1.0, learning_rate=2e-3
    )
    u, t = task.sample(200, seed=5)
    data = from_arrays(list(np.swapaxes(u, 0, 1)), t, tuple("0123"))
    poor = gs.SRN.random(task.inputs, 40, task.outputs, start="gaussian", variance=0.002, seed=0)
    before = diagnose(Model.of(poor), data)
    assert before.judgement.advice == (Advice.SIEVE,)
    stuck = gs.train(poor, task, recipe, sieve="off")
    advised = gs.SRN.random(task.inputs, 40, task.outputs, start="orthogonal", seed=0)
    learned = gs.train(advised, task, recipe)
    assert learned.test_accuracy > stuck.test_accuracy + 0.3


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
