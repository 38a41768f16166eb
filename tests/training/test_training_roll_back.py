"""A run that is lost goes back to where its loss was lowest, and only then."""

import math

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.training.roll_back import RollBack
from gradsieve.training.step import Stepper

TASK = gs.tasks.temporal_order(length=20)


def new_stepper():
    net = gs.SRN.random(TASK.inputs, 6, TASK.outputs, TASK.output, variance=0.1, seed=0)
    stepper = Stepper(net, gs.Recipe().replaced(learning_rate=1e-2, rms_decay=0.9))
    for seed in range(3):
        stepper.step(*TASK.sample(5, seed=seed), None)
    return stepper


def state(stepper):
    square = stepper.descent.mean_square
    return stepper.net.flat.copy(), square.values.copy(), square.seen


def move_on(stepper):
    stepper.step(*TASK.sample(5, seed=9), None)


def test_a_lost_run_is_again_what_it_was_when_its_loss_was_lowest_at_rest_and_at_half_the_rate():
    stepper = new_stepper()
    roll_back = RollBack(6.0, stepper.descent, None)
    assert not roll_back.look(stepper.descent, [2.0], None)
    move_on(stepper)
    assert not roll_back.look(stepper.descent, [1.0], None)
    lowest = state(stepper)
    move_on(stepper)
    assert not roll_back.look(stepper.descent, [5.9], None)  # worse, but not lost
    assert not np.array_equal(stepper.net.flat, lowest[0])
    assert roll_back.share_in(None) == 1
    for share in (0.5, 0.25):
        assert roll_back.look(stepper.descent, [6.1], None)
        for own, then in zip(state(stepper), lowest, strict=True):
            assert np.array_equal(own, then)
        assert not stepper.descent.velocity.any()
        assert roll_back.share_in(None) == share
        move_on(stepper)


def test_longer_sequences_are_begun_at_the_whole_rate_and_measured_by_themselves():
    stepper = new_stepper()
    roll_back = RollBack(6.0, stepper.descent, 10)
    roll_back.look(stepper.descent, [1.0], 10)
    assert roll_back.look(stepper.descent, [7.0], 10)
    assert (roll_back.share_in(10), roll_back.share_in(None)) == (0.5, 1)
    assert not roll_back.look(stepper.descent, [50.0], None)  # they are harder, which is no loss
    assert roll_back.share_in(None) == 1
    assert roll_back.look(stepper.descent, [301.0], None)


def test_a_few_sequences_astray_are_no_reason_and_minibatches_without_a_loss_do_not_count():
    stepper = new_stepper()
    roll_back = RollBack(6.0, stepper.descent, None)
    roll_back.look(stepper.descent, [1.0, 1.0, 1.0], None)
    assert not roll_back.look(stepper.descent, [1.0, 1000.0, 1.0], None)
    assert not roll_back.look(stepper.descent, [math.nan, math.nan, 1.0], None)
    assert roll_back.look(stepper.descent, [1.0, 1000.0, 1000.0], None)
    assert roll_back.look(stepper.descent, [math.nan], None)  # nothing could be looked at: lost


@pytest.mark.parametrize("roll_back", [None, 1.2])
def test_a_run_whose_rate_is_too_large_goes_back_where_that_is_asked_for(roll_back):
    net = gs.SRN.random(TASK.inputs, 6, TASK.outputs, TASK.output, variance=0.1, seed=0)
    run = gs.train(
        net, TASK, gs.Recipe(), learning_rate=1.0, roll_back=roll_back, epochs=12, iterations=5,
        sizes=(50, 20, 20),
    )  # fmt: skip
    backs = [record.get("rolled_back") for record in run.history]
    assert backs == 12 * [None] if roll_back is None else any(backs)


def test_a_run_that_is_never_lost_is_bit_for_bit_the_same():
    net = gs.SRN.random(TASK.inputs, 6, TASK.outputs, TASK.output, variance=0.1, seed=0)
    small = {"learning_rate": 1e-3, "epochs": 6, "iterations": 5, "sizes": (50, 20, 20)}
    plain, watched = (
        gs.train(net, TASK, gs.Recipe(), **small, roll_back=times) for times in (None, 100.0)
    )
    assert np.array_equal(plain.final.flat, watched.final.flat)
