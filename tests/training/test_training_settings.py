"""The protocol as one value: stored, read back, and refused where it cannot be."""

import dataclasses
import json
import math

import pytest

import gradsieve as gs
from gradsieve.training import Settings


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(sieve=gs.Sieve((-2, 0.5), max_change=0.1, policy="steer", horizon=7), clip=0.5),
        Settings(rms_decay=0.99, rms_bound=10.0, warmup=0.1, cooldown=0.25, retreat=6.0),
        Settings(stages=[[10, 20], [50, 30]], rate_by_length=1.3, batch_by_length=1.5),
        Settings(sizes=[10, 20, 30], stop_at=None, patience=4, engine="reference"),
    ],
)
def test_settings_survive_json(settings):
    assert Settings.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings


def test_the_defaults_are_the_papers_protocol():
    settings = Settings()
    assert (settings.batch, settings.momentum, settings.iterations) == (10, 0.9, 50)
    assert (settings.epochs, settings.sizes) == (2000, (20_000, 1_000, 10_000))
    assert (settings.sieve, settings.clip, settings.stop_at) == (None, None, 0.99)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"batch": 0}, "batch"),
        ({"epochs": 0}, "epochs"),
        ({"iterations": -1}, "iterations"),
        ({"validate_every": 0}, "validate_every"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"learning_rate": math.inf}, "learning_rate"),
        ({"momentum": 1}, "momentum"),
        ({"momentum": -0.1}, "momentum"),
        ({"momentum": math.nan}, "momentum"),
        ({"clip": 0}, "clip"),
        ({"clip": math.nan}, "clip"),
        ({"rms_decay": 1}, "rms_decay"),
        ({"rms_decay": 0}, "rms_decay"),
        ({"rms_decay": 0.9, "rms_bound": 0.5}, "rms_bound"),
        ({"rms_decay": 0.9, "rms_bound": math.nan}, "rms_bound"),
        ({"rms_bound": 10}, "needs an rms_decay"),
        ({"warmup": 0}, "warmup"),
        ({"warmup": 1.1}, "warmup"),
        ({"retreat": 1}, "retreat"),
        ({"retreat": math.nan}, "retreat"),
        ({"cooldown": 0}, "cooldown"),
        ({"cooldown": 1.1}, "cooldown"),
        ({"cooldown": math.nan}, "cooldown"),
        ({"stages": ((10, 0),)}, "pairs"),
        ({"stages": ((0, 10),)}, "pairs"),
        ({"stages": ((10, 10, 10),)}, "pairs"),
        ({"stages": ((10, 1000), (20, 1000))}, "2000 of 2000 epochs"),
        ({"rate_by_length": -1}, "rate_by_length"),
        ({"batch_by_length": math.nan}, "batch_by_length"),
        ({"sizes": (1, 2)}, "sizes"),
        ({"sizes": (0, 1, 1)}, "sizes"),
        ({"seed": -1}, "seed"),
        ({"patience": 0}, "patience"),
        ({"engine": "cuda"}, "'native' or 'reference'"),
        ({"measure": "q"}, "'Q' or 'slow Q'"),
        ({"sieve": "full"}, "sieve"),
    ],
)
def test_settings_that_cannot_be_are_named(wrong, names):
    with pytest.raises(gs.InvalidArgument, match=names):
        Settings(**wrong)


def test_the_rate_falls_over_the_cooldown_and_only_then():
    assert {Settings(epochs=10).rate_in(epoch, 100) for epoch in range(10)} == {1e-5}
    cooled = Settings(learning_rate=1.0, epochs=10, cooldown=0.5)
    rates = [cooled.rate_in(epoch, 100) for epoch in range(10)]
    assert rates == pytest.approx([1, 1, 1, 1, 1, 1, 0.8, 0.6, 0.4, 0.2])


def test_the_rate_rises_over_the_warmup_and_both_may_meet():
    warmed = Settings(learning_rate=1.0, epochs=10, warmup=0.4)
    rates = [warmed.rate_in(epoch, 100) for epoch in range(10)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, *[1] * 7])
    both = dataclasses.replace(warmed, cooldown=1.0)
    rates = [both.rate_in(epoch, 100) for epoch in range(10)]
    assert rates[:5] == pytest.approx([0.25, 0.45, 0.6, 0.7, 0.6])


def test_the_rate_rises_again_wherever_sequences_become_longer():
    staged = Settings(learning_rate=1.0, epochs=10, warmup=0.2, stages=((10, 4), (50, 3)))
    rates = [staged.rate_in(epoch, 100) for epoch in range(10)]
    assert rates == [0.5, 1, 1, 1, 0.5, 1, 1, 0.5, 1, 1]


def test_every_stage_has_its_epochs_and_the_rest_is_the_tasks_own():
    staged = Settings(epochs=6, stages=((10, 2), (50, 1)))
    assert [staged.stage_in(epoch) for epoch in range(6)] == [10, 10, 50, None, None, None]
    assert Settings().stage_in(0) is None


def test_the_rate_of_a_stage_is_larger_as_its_sequences_are_shorter_where_that_is_asked_for():
    staged = Settings(learning_rate=1.0, epochs=4, stages=((10, 1), (50, 1)), cooldown=1.0)
    assert [staged.rate_in(epoch, 100) for epoch in range(4)] == [1, 0.75, 0.5, 0.25]
    by_length = dataclasses.replace(staged, rate_by_length=1.0)
    assert [by_length.rate_in(epoch, 100) for epoch in range(4)] == [10, 1.5, 0.5, 0.25]
    squared = dataclasses.replace(staged, rate_by_length=2.0)
    assert [squared.rate_in(epoch, 100) for epoch in range(4)] == [100, 3, 0.5, 0.25]


def test_a_minibatch_of_a_stage_sees_as_many_steps_as_any_other_where_that_is_asked_for():
    staged = Settings(batch=3, epochs=4, stages=((10, 1), (70, 1), (600, 1)))
    assert [staged.batch_in(epoch, 100) for epoch in range(4)] == [3, 3, 3, 3]
    by_length = dataclasses.replace(staged, batch_by_length=1.0)
    assert [by_length.batch_in(epoch, 100) for epoch in range(4)] == [30, 4, 1, 3]
    squared = dataclasses.replace(staged, batch_by_length=2.0)
    assert [squared.batch_in(epoch, 100) for epoch in range(4)] == [300, 6, 1, 3]
