"""A run's configuration is a value: its key and its text say all of it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rows import run

from gradsieve.experiments import search
from gradsieve.experiments.baselines import Listing, RandomSkip, Regularised
from gradsieve.experiments.config import REPORTED, Condition, RunConfig
from gradsieve.recipe import Sieve

CONFIG = run(3, where=("temporal_order", 100), sieve=Sieve("steer", (-2, 0.5)), clip=1.0)


@pytest.mark.parametrize("baseline", [None, RandomSkip(0.25), Regularised(3.0), Listing()])
def test_text_and_back_is_the_same_configuration(baseline):
    config = replace(CONFIG, baseline=baseline, arm="a name")
    read = RunConfig.from_json(config.as_json())
    assert (read, read.key, read.arm) == (config, config.key, "a name")


def test_every_part_changes_the_key():
    others = (
        replace(CONFIG, condition=Condition("adding", 100)),
        replace(CONFIG, condition=Condition("temporal_order", 150)),
        replace(CONFIG, condition=Condition("temporal_order", 100, "pascanu")),
        replace(CONFIG, network=4),
        replace(CONFIG, hidden=50),
        replace(CONFIG, baseline=RandomSkip(0.5)),
        replace(CONFIG, baseline=RandomSkip(0.6)),
        replace(CONFIG, baseline=Regularised(0.5)),
        CONFIG.replaced(learning_rate=2e-3),
        CONFIG.replaced(clip=None),
        CONFIG.replaced(epochs=1),
        CONFIG.replaced(variance=0.02),
        CONFIG.replaced(sieve="off"),
        CONFIG.replaced(steer_rate=0.1),
    )
    assert len({CONFIG.key, *(other.key for other in others)}) == len(others) + 1


def test_equal_configurations_have_equal_keys_however_they_are_written():
    shuffled = json.loads(CONFIG.as_json())
    shuffled = dict(reversed(shuffled.items()))
    shuffled["recipe"] = {
        part: None if settings is None else dict(reversed(settings.items()))
        for part, settings in reversed(shuffled["recipe"].items())
    }
    shuffled["recipe"]["optimiser"]["clip"] = 1  # which is 1.0
    read = RunConfig.from_json(json.dumps(shuffled))
    assert (read, read.key) == (CONFIG, CONFIG.key)


def test_the_name_of_an_arm_is_no_part_of_a_run():
    named = replace(CONFIG, arm="another name")
    assert (named, named.key) == (CONFIG, CONFIG.key)


def test_settings_are_replaced_where_they_belong():
    config = replace(CONFIG, baseline=Regularised(1.0)).replaced(weight=10.0, clip=0.5)
    assert config.baseline == Regularised(10.0)
    assert config.recipe.optimiser.clip == 0.5


def test_the_same_network_number_means_the_same_initial_weights_for_every_way_of_training():
    other = CONFIG.replaced(sieve="off", clip=None, learning_rate=1e-5)
    assert np.array_equal(CONFIG.initial_network().flat, other.initial_network().flat)


def test_the_start_of_a_recipe_is_that_of_its_network():
    plain, begun = CONFIG.initial_network(), CONFIG.replaced(recurrent="identity", gain=0.5)
    identity = begun.initial_network()
    assert np.array_equal(identity.w_rec, 0.5 * np.eye(100))
    for name in ("w_in", "b", "w_out", "b_out"):
        assert np.array_equal(getattr(identity, name), getattr(plain, name))


def test_a_run_says_in_its_folder_what_it_is_called_and_how_it_was_drawn():
    about = replace(CONFIG, arm="clipping, steer").job().about
    assert about == {"label": "clipping, steer", "network": 3, "drawn_by": 3}


def test_no_network_of_the_search_is_reported():
    assert not set(search.NETWORKS) & set(REPORTED)
