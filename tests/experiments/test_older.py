"""Configurations of version 0.1 are read as what they were."""

import json
import math

import pytest

from gradsieve.experiments.baselines import Listing, RandomSkip, Regularised
from gradsieve.experiments.older import NAMES, upgraded
from gradsieve.experiments.studies import ARMS

PLAIN = {
    "clip": None, "epochs": 2000, "hidden": 100, "learning_rate": 1e-5, "length": 100,
    "method": "off", "network": 0, "options": [], "task": "adding", "variance": 0.01,
}  # fmt: skip
WIDE_IDENTITY = [
    ["bias_spread", 0.125], ["cooldown", 1.0], ["growth", 1.3], ["identity", 1.0],
    ["input_gain", 8.0], ["q_max", 1.0], ["rms_bound", 10.0], ["rms_decay", 0.999],
    ["retreat", 6.0], ["warmup", 0.01], ["wide", 1.5],
]  # fmt: skip


def read(**changes):
    return upgraded(PLAIN | changes)


def test_every_setting_of_the_longest_configuration_is_kept():
    run = read(method="hold", clip=1.0, options=WIDE_IDENTITY)
    assert run.arm == NAMES["hold+identity+bent+growth+wide+rms+clip"]
    recipe = run.recipe
    assert recipe.sieve.policy == "hold"
    assert (recipe.sieve.q_range, recipe.sieve.limit) == ((-2.0, 1.0), math.inf)
    assert (recipe.start.recurrent, recipe.start.input_gain) == ("identity", 8.0)
    assert recipe.start.bias_spread == 0.125
    assert (recipe.schedule.warm_up, recipe.schedule.cool_down) == (0.01, 1.0)
    assert recipe.schedule.roll_back == 6.0
    assert (recipe.curriculum.rate_power, recipe.curriculum.batch_power) == (1.3, 1.5)
    assert recipe.curriculum.lengths(100, 2000)[:2] == ((10, 200), (15, 200))
    assert (recipe.optimiser.rms_decay, recipe.optimiser.rms_bound) == (0.999, 10.0)


def test_the_order_of_options_does_not_matter():
    first = read(method="hold", clip=1.0, options=WIDE_IDENTITY)
    assert read(method="hold", clip=1.0, options=WIDE_IDENTITY[::-1]).key == first.key


@pytest.mark.parametrize(
    ("method", "baseline", "policy", "estimator"),
    [
        ("off", None, None, None),
        ("frozen", None, "skip", "frozen"),
        ("full", None, "skip", "full"),
        ("listing", Listing(), "skip", "frozen"),
        ("random", RandomSkip(0.7), None, None),
        ("regularise", Regularised(0.1), None, None),
        ("select", None, "select", "full"),
        ("steer", None, "steer", "full"),
    ],
)
def test_a_method_is_a_sieve_or_a_baseline(method, baseline, policy, estimator):
    options = {"random": [["kept", 0.7]], "regularise": [["weight", 0.1]]}.get(method, [])
    run = read(method=method, options=options)
    sieve = run.recipe.sieve
    assert run.baseline == baseline
    assert (sieve and sieve.policy, sieve and sieve.estimator) == (policy, estimator)


def test_what_is_of_this_version_is_left_as_it_is():
    run = read(method="steer", clip=1.0)
    assert upgraded(json.loads(run.as_json())) == run


def test_every_arm_of_version_0_1_is_still_an_arm():
    assert set(NAMES.values()) <= set(ARMS)
