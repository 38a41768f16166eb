"""A run that is lost goes back to where its loss was lowest, and only then."""

import math

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.training.retreat import Retreat
from gradsieve.training.settings import Settings
from gradsieve.training.step import Stepper

TASK = gs.tasks.temporal_order(length=20)


def new_stepper():
    net = gs.SRN.random(TASK.inputs, 6, TASK.outputs, TASK.output, variance=0.1, seed=0)
    stepper = Stepper(net, Settings(learning_rate=1e-2, rms_decay=0.9))
    for seed in range(3):
        stepper.step(*TASK.sample(5, seed=seed), None)
    return stepper


def state(stepper):
    return stepper.net.flat.copy(), stepper.scaling.mean_square.copy(), stepper.scaling.seen


def move_on(stepper):
    stepper.step(*TASK.sample(5, seed=9), None)


def test_a_lost_run_is_again_what_it_was_when_its_loss_was_lowest_at_rest_and_at_half_the_rate():
    stepper = new_stepper()
    retreat = Retreat(6.0, stepper, None)
    assert not retreat.look(stepper, [2.0], None)
    move_on(stepper)
    assert not retreat.look(stepper, [1.0], None)
    lowest = state(stepper)
    move_on(stepper)
    assert not retreat.look(stepper, [5.9], None)  # worse, but not lost
    assert not np.array_equal(stepper.net.flat, lowest[0])
    assert retreat.share_in(None) == 1
    for share in (0.5, 0.25):
        assert retreat.look(stepper, [6.1], None)
        for own, then in zip(state(stepper), lowest, strict=True):
            assert np.array_equal(own, then)
        assert not stepper.velocity.any()
        assert retreat.share_in(None) == share
        move_on(stepper)


def test_longer_sequences_are_begun_at_the_whole_rate_and_measured_by_themselves():
    stepper = new_stepper()
    retreat = Retreat(6.0, stepper, 10)
    retreat.look(stepper, [1.0], 10)
    assert retreat.look(stepper, [7.0], 10)
    assert (retreat.share_in(10), retreat.share_in(None)) == (0.5, 1)
    assert not retreat.look(stepper, [50.0], None)  # they are harder, which is no loss
    assert retreat.share_in(None) == 1
    assert retreat.look(stepper, [301.0], None)


def test_a_few_sequences_astray_are_no_reason_and_minibatches_without_a_loss_do_not_count():
    stepper = new_stepper()
    retreat = Retreat(6.0, stepper, None)
    retreat.look(stepper, [1.0, 1.0, 1.0], None)
    assert not retreat.look(stepper, [1.0, 1000.0, 1.0], None)
    assert not retreat.look(stepper, [math.nan, math.nan, 1.0], None)
    assert retreat.look(stepper, [1.0, 1000.0, 1000.0], None)
    assert retreat.look(stepper, [math.nan], None)  # nothing could be looked at: lost


@pytest.mark.parametrize("retreat", [None, 1.2])
def test_a_run_whose_rate_is_too_large_goes_back_where_that_is_asked_for(retreat):
    net = gs.SRN.random(TASK.inputs, 6, TASK.outputs, TASK.output, variance=0.1, seed=0)
    run = gs.train(
        net, TASK, learning_rate=1.0, retreat=retreat, epochs=12, iterations=5, sizes=(50, 20, 20)
    )
    backs = [record.get("retreated") for record in run.history]
    assert backs == 12 * [None] if retreat is None else any(backs)


def test_a_run_that_is_never_lost_is_bit_for_bit_the_same():
    net = gs.SRN.random(TASK.inputs, 6, TASK.outputs, TASK.output, variance=0.1, seed=0)
    small = {"learning_rate": 1e-3, "epochs": 6, "iterations": 5, "sizes": (50, 20, 20)}
    plain, watched = (gs.train(net, TASK, **small, retreat=times) for times in (None, 100.0))
    assert np.array_equal(plain.final.flat, watched.final.flat)
