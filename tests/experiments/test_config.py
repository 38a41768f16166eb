"""A run's configuration is a value: its key and its text say all of it."""

from dataclasses import replace

import numpy as np
import pytest

from gradsieve.errors import InvalidArgument
from gradsieve.experiments import search
from gradsieve.experiments.config import REPORTED, RunConfig
from gradsieve.experiments.methods import settings_of, sieve_of, stepper_of

CONFIG = RunConfig("temporal_order", 100, "steer", 3, 1e-3, 1.0, options=(("q_max", 0.5),))


def test_text_and_back_is_the_same_configuration():
    assert RunConfig.from_json(CONFIG.as_json()) == CONFIG


def test_every_field_changes_the_key():
    others = (
        replace(CONFIG, task="adding"),
        replace(CONFIG, length=150),
        replace(CONFIG, method="off"),
        replace(CONFIG, network=4),
        replace(CONFIG, learning_rate=2e-3),
        replace(CONFIG, clip=None),
        replace(CONFIG, epochs=1),
        replace(CONFIG, variance=0.02),
        replace(CONFIG, hidden=50),
        replace(CONFIG, options=()),
    )
    assert len({CONFIG.key, *(other.key for other in others)}) == len(others) + 1


def test_the_key_does_not_depend_on_the_process():
    assert RunConfig("adding", 100, "off", 0, 1e-5).key == "3d2362a2e963cdb120af"


@pytest.mark.parametrize(
    ("method", "clip", "label"),
    [
        ("off", None, "off"),
        ("off", 1.0, "clip"),
        ("full", None, "full"),
        ("full", 1.0, "full+clip"),
    ],
)
def test_labels_name_the_method_and_the_clipping(method, clip, label):
    assert RunConfig("adding", 100, method, 0, 1e-3, clip).label == label


def test_the_same_network_number_means_the_same_initial_weights_for_every_method():
    first = CONFIG.initial_network()
    second = replace(CONFIG, method="off", clip=None, learning_rate=1e-5).initial_network()
    assert np.array_equal(first.flat, second.flat)


def test_the_identity_is_the_only_thing_that_its_start_changes():
    plain = CONFIG.initial_network()
    begun = replace(CONFIG, options=(("identity", 1.0),))
    identity = begun.initial_network()
    assert np.array_equal(identity.w_rec, np.eye(100))
    for name in ("w_in", "b", "w_out", "b_out"):
        assert np.array_equal(getattr(identity, name), getattr(plain, name))
    assert begun.label == "steer+identity+clip"
    assert begun.about()["recurrent"] == "identity"


def test_no_network_of_the_search_is_reported():
    assert not set(search.NETWORKS) & set(REPORTED)


def test_no_family_is_searched_with_a_larger_budget_than_clipping():
    assert len(search.TRIED["clipped"]) == len(search.TRIED["not clipped"])
    assert len(search.TRIED["hold"]) <= len(search.TRIED["clipped"])


def test_the_gain_of_a_configuration_multiplies_the_initial_recurrent_weights():
    plain, damped = CONFIG.initial_network(), replace(CONFIG, options=(("gain", 0.5),))
    np.testing.assert_array_equal(damped.initial_network().w_rec, 0.5 * plain.w_rec)
    np.testing.assert_array_equal(damped.initial_network().w_in, plain.w_in)


def test_the_listing_as_printed_wants_the_opposite_of_the_text():
    printed, meant = (sieve_of(replace(CONFIG, method=name)) for name in ("listing", "frozen"))
    assert printed.wanted_sign(2.0) == -meant.wanted_sign(2.0) == -1


def test_an_unknown_method_is_named():
    with pytest.raises(InvalidArgument, match="magic"):
        sieve_of(replace(CONFIG, method="magic"))


@pytest.mark.parametrize(
    "method", ["off", "frozen", "full", "listing", "random", "regularise", "select", "steer"]
)
def test_every_method_makes_a_stepper(method):
    config = replace(CONFIG, method=method)
    assert stepper_of(config)(config.initial_network(), settings_of(config)).net.hidden == 100
