"""Copy memory, memorization and random permutation: sequences as published, scores counted."""

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.errors import InvalidArgument

OTHERS = ("copy_memory", "memorization", "random_permutation")
RECALLS = OTHERS[:2]


@pytest.mark.parametrize("name", RECALLS)
def test_the_symbols_come_first_are_recalled_last_and_cued_between(name):
    task = gs.tasks.by_name(name, length=30)
    u, t = task.sample(50, seed=3)
    symbols = u.argmax(axis=2)
    assert (u.sum(axis=2) == 1).all()
    assert u.shape == (50, 50, task.inputs)
    blank, cue = task.values, task.values + 1
    np.testing.assert_array_equal(t[-10:], symbols[:10])
    assert (t[:-10] == blank).all()
    assert set(np.unique(symbols[:10])) == set(range(task.values))
    assert (symbols == cue).sum(axis=0).tolist() == [1] * 50
    first_said = 40
    assert (symbols[first_said - (name == "copy_memory")] == cue).all()


@pytest.mark.parametrize("name", RECALLS)
def test_only_the_recall_counts(name):
    task = gs.tasks.by_name(name, length=5)
    _, t = task.sample(8, seed=0)
    outputs = np.eye(task.outputs)[t]
    assert task.accuracy(outputs, t) == 1
    outputs[:-10] = 0.5  # what is said before it
    assert task.accuracy(outputs, t) == 1
    outputs[-1, 0] = np.roll(outputs[-1, 0], 1)  # one symbol of one sequence
    assert task.accuracy(outputs, t) == (7 / 8 if name == "memorization" else 79 / 80)
    outputs[-1, 0] = np.nan
    assert task.accuracy(outputs, t) < 1


def test_a_constant_guess_scores_what_is_said():
    task = gs.tasks.copy_memory(length=3)
    _, t = task.sample(20_000, seed=1)
    guess = np.zeros((task.steps, 20_000, task.outputs))
    guess[..., 2] = 1
    assert task.accuracy(guess, t) == pytest.approx(task.constant_guess, abs=0.003)
    assert gs.tasks.memorization(length=3).constant_guess == pytest.approx(5.0**-10)
    task = gs.tasks.random_permutation(length=3)
    _, t = task.sample(20_000, seed=1)
    assert task.accuracy(np.eye(100)[np.zeros(20_000, int)], t) == pytest.approx(0.5, abs=0.02)


def test_a_random_permutation_begins_with_one_of_two_symbols_that_never_come_again():
    u, t = gs.tasks.random_permutation(length=40).sample(300, seed=2)
    symbols = u.argmax(axis=2)
    np.testing.assert_array_equal(symbols[0], t)
    assert set(t) == {0, 1}
    assert symbols[1:].min() >= 2
    assert set(np.unique(symbols[1:])) == set(range(2, 100))


@pytest.mark.parametrize("name", OTHERS)
def test_they_are_named_drawn_again_and_of_any_length(name):
    task = gs.tasks.by_name(name, length=20)
    for first, second in zip(task.sample(3, seed=4), task.sample(3, seed=4), strict=True):
        np.testing.assert_array_equal(first, second)
    assert task.of_length(7) == gs.tasks.by_name(name, length=7)
    with pytest.raises(InvalidArgument, match="one form"):
        gs.tasks.by_name(name, convention="pascanu")
    with pytest.raises(InvalidArgument, match="tolerance"):
        gs.tasks.by_name(name, tolerance=0.1)
    with pytest.raises(InvalidArgument, match="length"):
        gs.tasks.by_name(name, length=0)


@pytest.mark.parametrize("name", RECALLS)
def test_a_network_is_trained_on_every_step(name):
    task = gs.tasks.by_name(name, length=3)
    net = gs.SRN.random(task.inputs, 30, task.outputs, start="orthogonal")
    settings = {"epochs": 20, "sizes": (500, 100, 100), "batch": 20, "sieve": "off"}
    run = gs.train(net, task, learning_rate=1e-3, **settings)
    assert run.history[-1]["loss"] < 0.7 * run.history[0]["loss"]


def test_outputs_of_another_shape_are_refused():
    task = gs.tasks.copy_memory(length=3)
    with pytest.raises(InvalidArgument, match="outputs have shape"):
        task.correct(np.zeros((4, 9)), np.zeros(4, int))
    with pytest.raises(InvalidArgument, match="t has shape"):
        task.correct(np.zeros((23, 4, 9)), np.zeros((4, 23), int))


def test_the_first_of_eight_symbols_is_the_answer_and_any_may_come_again():
    task = gs.tasks.first_symbol(length=60)
    u, t = task.sample(500, seed=2)
    symbols = u.argmax(axis=2)
    assert (u.sum(axis=2) == 1).all()
    assert (symbols[0] == t).all()
    assert set(np.unique(t)) == set(np.unique(symbols[1:])) == set(range(8))
    assert task.constant_guess == 1 / 8
