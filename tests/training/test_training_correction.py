"""Corrections belong to the step: they fall with the rate and with clipping, and undo nothing.

For "hold", "steer" and "auto" alike, with the velocity that the recommended recipe has: a bound by
the whole update would grow with every correction that the velocity holds.
"""

import math

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.training.data import draw
from gradsieve.training.evaluation import evaluate
from gradsieve.training.step import Stepper
from oracles import random_problem
from plateau import Plateau

POLICIES = ("hold", "steer", "auto")
every_policy = pytest.mark.parametrize("policy", POLICIES)
VANISHED, EXPLODED = (-9.0, -8.0), (8.0, 9.0)  # as any Q here looks beside these ranges
TASK = gs.tasks.temporal_order(length=50)
RECIPE = gs.recipes.own_data()


def stepped(problem, rate, steps=1, **settings):
    """The network after some steps on one minibatch, and whether each was corrected."""
    net, u, t, starts = problem
    recipe = gs.Recipe().replaced(learning_rate=rate, **settings)
    stepper = Stepper(net.copy(), recipe)
    stepper.learning = Plateau()
    reasons = [stepper.step(u, t, starts).verdict.reason for _ in range(steps)]
    return stepper.net, [reason.corrected for reason in reasons]


@pytest.fixture
def problem():
    return random_problem(11, steps=12, batch=8, inputs=2, hidden=9, outputs=3, output="softmax")


@every_policy
@pytest.mark.parametrize("q_range", [VANISHED, EXPLODED])
@pytest.mark.parametrize("limit", [0.3, 1.0, 4.0])
def test_a_correction_is_at_most_the_limit_times_as_long_as_the_plain_step(
    policy, q_range, limit, problem
):
    plain, _ = stepped(problem, 1e-3)
    settings = {"sieve": gs.Sieve(policy, q_range, limit=limit, steer_rate=10.0)}
    moved, corrected = stepped(problem, 1e-3, **settings)
    assert all(corrected)
    count = plain.w_in.size + plain.w_rec.size + plain.b.size
    own = (plain.flat - problem[0].flat)[:count]
    correction = moved.flat - plain.flat
    assert not correction[count:].any()
    assert np.linalg.norm(correction) == pytest.approx(limit * np.linalg.norm(own), rel=1e-6)


@every_policy
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_as_the_rate_falls_so_does_all_that_is_moved_in_proportion(policy, momentum, problem):
    """Over thirty steps: their first order is the same at every small rate."""
    settings = {"sieve": gs.Sieve(policy, VANISHED), "momentum": momentum}
    moved = {}
    for rate in (1e-9, 1e-10, 1e-11):
        net, corrected = stepped(problem, rate, steps=30, **settings)
        assert all(corrected)
        moved[rate] = (net.flat - problem[0].flat) / rate
    np.testing.assert_allclose(moved[1e-10], moved[1e-9], rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(moved[1e-11], moved[1e-9], rtol=1e-2, atol=1e-3)
    plain, _ = stepped(problem, 1e-9, steps=30, momentum=momentum)
    longest = (1 + settings["sieve"].limit) * np.linalg.norm(plain.flat - problem[0].flat) / 1e-9
    assert np.linalg.norm(moved[1e-9]) <= 1.05 * longest


@every_policy
@pytest.mark.parametrize("rms_decay", [None, 0.9])
def test_clipping_bounds_corrections_with_the_rest(policy, rms_decay, problem):
    rate, clip, limit = 1e-3, 1e-4, 2.0
    settings = {"momentum": 0.0, "rms_decay": rms_decay, "clip": clip}
    sieve = gs.Sieve(policy, VANISHED, limit=limit)
    net, corrected = stepped(problem, rate, sieve=sieve, **settings)
    assert all(corrected)
    assert np.linalg.norm(net.flat - problem[0].flat) <= (1 + limit) * rate * clip * (1 + 1e-6)


@pytest.fixture(scope="module")
def solved():
    net = gs.SRN.random(
        TASK.inputs, 50, TASK.outputs, output=TASK.output, start="orthogonal", seed=2
    )
    run = gs.train(
        net, TASK, learning_rate=3e-3, cool_down=None, epochs=200, validate_every=1,
        sizes=(5000, 500, 500), stop_at=0.999,
    )  # fmt: skip
    assert run.stopped == "solved"
    return run.network


def trained_on(net, sieve, rates):
    """Accuracy after one step at each rate, and how many steps were corrected."""
    data = draw(TASK, net, (2000, 1000, 1), seed=7)
    assert evaluate(net, TASK, data.validation, "native")[0] > 0.995
    stepper = Stepper(net.copy(), RECIPE.replaced(sieve=sieve))
    stepper.learning = Plateau()
    order = np.random.default_rng(0)
    corrected = 0
    for rate in rates:
        stepper.descent.learning_rate = rate
        indices = order.integers(0, 2000, 10)
        corrected += stepper.step(*data.train.batch(indices)).verdict.reason.corrected
    return evaluate(stepper.net, TASK, data.validation, "native")[0], corrected


RATES = {
    "zero": [1e-12] * 300,
    "small": [1e-6] * 300,
    "falling": [1e-3 * (300 - step) / 300 for step in range(300)],
}


@every_policy
@pytest.mark.parametrize("rates", RATES.values(), ids=RATES)
def test_a_solved_network_stays_solved(policy, rates, solved):
    accuracy, _ = trained_on(solved, gs.Sieve(policy), rates)
    assert accuracy > 0.99


@every_policy
@pytest.mark.parametrize("rates", ["zero", "small"])
def test_a_solved_network_stays_solved_however_far_its_q_is_from_the_range(policy, rates, solved):
    accuracy, corrected = trained_on(solved, gs.Sieve(policy, (-3, -2)), RATES[rates])
    assert corrected > 100
    assert accuracy > 0.99


def test_without_a_bound_a_solved_network_is_unlearned_at_a_rate_of_nearly_zero(solved):
    accuracy, _ = trained_on(solved, gs.Sieve("hold", (-3, -2), limit=math.inf), RATES["zero"])
    assert accuracy < 0.9
