"""Short sequences first: which stages a run has, exactly, and what changes within them."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.recipe.curriculum import SHORTEST

# The shares of the committed record, whose stages were int(length * share) and int(epochs * share).
STAGES = ((Fraction(1, 5), Fraction(1, 10)), (Fraction(1, 2), Fraction(1, 7)))
TWENTIETHS = ((2, 4), (3, 4), (4, 4), (6, 3), (8, 3), (10, 2), (12, 2), (14, 2), (16, 2), (18, 2))
GROWTH = tuple((Fraction(steps, 20), Fraction(epochs, 40)) for steps, epochs in TWENTIETHS)


def exact(shares, length, epochs):
    whole = [(int(length * steps), int(epochs * share)) for steps, share in shares]
    return tuple((steps, share) for steps, share in whole if steps >= SHORTEST and share >= 1)


@pytest.mark.parametrize("shares", [STAGES, GROWTH], ids=["STAGES", "GROWTH"])
def test_shares_give_the_stages_that_exact_fractions_give(shares):
    stages = gs.Curriculum(tuple((float(steps), float(epochs)) for steps, epochs in shares))
    lengths, epochs = range(60, 1001), range(20, 2001)
    for length in lengths:  # each number of steps and of epochs is found apart from the other
        assert stages.lengths(length, 2000) == exact(shares, length, 2000)
    for count in epochs:
        assert stages.lengths(1000, count) == exact(shares, 1000, count)


@given(length=st.integers(60, 1000), epochs=st.integers(20, 2000))
def test_short_runs_leave_out_the_stages_that_would_be_too_short(length, epochs):
    curriculum = gs.Curriculum(GROWTH)
    found = curriculum.lengths(length, epochs)
    assert found == exact(GROWTH, length, epochs)
    assert all(steps >= SHORTEST and share >= 1 for steps, share in found)


def test_every_stage_has_its_epochs_and_the_rest_is_the_tasks_own():
    staged = gs.Curriculum(((0.1, 1 / 3), (0.5, 1 / 6)))
    found = [staged.stage(number, 7, 100, 6) for number in range(4)]
    assert found == [(10, 7, 2), (50, 7, 1), (None, 7, None), (None, 7, None)]
    assert gs.Curriculum().stage(0, 0, 100, 6) == (None, 0, None)


@given(length=st.integers(60, 1000), epochs=st.integers(20, 500))
def test_the_stages_come_in_their_order_and_leave_epochs_for_the_tasks_own_length(length, epochs):
    curriculum = gs.Curriculum(GROWTH)
    lengths = curriculum.lengths(length, epochs)
    found = [curriculum.stage(number, 0, length, epochs) for number in range(len(lengths))]
    assert tuple((stage.length, stage.most) for stage in found) == lengths
    assert sum(stage.most for stage in found) < epochs


def test_the_rate_of_a_stage_is_larger_as_its_sequences_are_shorter_where_that_is_asked_for():
    stages = [
        gs.Curriculum(((0.1, 0.25), (0.5, 0.25))).stage(number, 0, 100, 4) for number in range(3)
    ]
    for power, expected in ((0.0, [1, 1, 1]), (1.0, [10, 2, 1]), (2.0, [100, 4, 1])):
        curriculum = gs.Curriculum(rate_power=power)
        assert [curriculum.rate(stage, 100) for stage in stages] == expected


def test_a_rate_that_is_of_a_length_falls_where_the_tasks_own_is_longer_and_never_rises():
    stages = [gs.recipe.curriculum.Stage(length, 0) for length in (50, None)]
    curriculum = gs.Curriculum(rate_power=2.0, rate_length=100)
    assert [curriculum.rate(stage, 200) for stage in stages] == [4.0, 0.25]
    assert [curriculum.rate(stage, 100) for stage in stages] == [4.0, 1.0]
    assert [curriculum.rate(stage, 60) for stage in stages] == pytest.approx([1.44, 1.0])


def test_a_minibatch_of_a_stage_sees_as_many_steps_as_any_other_where_that_is_asked_for():
    lengths = (10, 70, 600, None)
    for power, expected in ((0.0, [3, 3, 3, 3]), (1.0, [30, 4, 1, 3]), (2.0, [300, 6, 1, 3])):
        curriculum = gs.Curriculum(batch_power=power)
        found = [
            curriculum.batch(gs.recipe.curriculum.Stage(length, 0), 100, 3) for length in lengths
        ]
        assert found == expected


@pytest.mark.parametrize(
    "stages",
    [((0.1, 0),), ((0, 0.1),), ((1, 0.1),), ((0.1, 0.1, 0.1),), ((0.1, math.nan),), (7,), "ab", 5],
)
def test_stages_that_are_no_shares_are_refused(stages):
    with pytest.raises(gs.InvalidArgument, match=r"stages is .*pairs"):
        gs.Curriculum(stages)


def test_some_epochs_must_be_left_for_the_tasks_own_length():
    with pytest.raises(gs.InvalidArgument, match="some epochs must be left"):
        gs.Curriculum(((0.1, 0.5), (0.5, 0.5)))
