"""Temporal order and its 3-bit form: every sequence is read back from its inputs alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsieve import tasks

CLASSIFICATION = ("temporal_order", "temporal_order_3bit")
SHORTEST = {"author": 5, "pascanu": 10, "hochreiter": 15}
SYMBOLS = np.array(list("ABcdef<!"))  # < start, ! trigger


def read_back(task, count, seed):
    """Each sequence as an array of letters, and its class."""
    u, t, starts = task.sample_with_starts(count, seed)
    starts = np.zeros(count, int) if starts is None else starts
    for example, start in enumerate(starts):
        steps = u[start:, example]
        assert ((steps == 0) | (steps == 1)).all()
        assert (steps.sum(axis=1) == 1).all()
        yield SYMBOLS[steps.argmax(axis=1)], int(t[example])


@pytest.mark.parametrize("name", CLASSIFICATION)
@pytest.mark.parametrize("convention", tasks.CONVENTIONS)
@given(beyond=st.integers(0, 200), seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=25)
def test_the_class_is_the_order_of_a_and_b(name, convention, beyond, seed):
    task = tasks.by_name(name, length=SHORTEST[convention] + beyond, convention=convention)
    bits = {"temporal_order": 2, "temporal_order_3bit": 3}[name]
    assert task.outputs == 2**bits
    for letters, target in read_back(task, 20, seed):
        told = "".join(letters[np.isin(letters, ["A", "B"])])
        assert len(told) == bits
        assert target == int(told.replace("A", "0").replace("B", "1"), base=2)
        if convention == "hochreiter":
            assert (letters[0], letters[-1]) == ("<", "!")
            letters = letters[1:-1]
        assert not np.isin(letters, ["<", "!"]).any()


@pytest.mark.parametrize(
    ("name", "convention", "length", "windows"),
    [
        # the author's and Hochreiter's steps count from 1, Pascanu's from 0
        ("temporal_order", "author", 100, [range(9, 20), range(39, 50)]),
        ("temporal_order", "author", 150, [range(14, 30), range(59, 75)]),
        ("temporal_order", "author", 105, [range(10, 21), range(41, 53)]),
        ("temporal_order", "author", 5, [range(1), range(1, 3)]),
        ("temporal_order", "pascanu", 100, [range(10, 20), range(50, 60)]),
        ("temporal_order", "pascanu", 150, [range(15, 30), range(75, 90)]),
        ("temporal_order", "pascanu", 109, [range(10, 20), range(54, 64)]),
        ("temporal_order", "hochreiter", 100, [range(9, 20), range(49, 60)]),
        ("temporal_order_3bit", "author", 100, [range(9, 20), range(29, 40), range(59, 70)]),
        ("temporal_order_3bit", "pascanu", 100, [range(10, 20), range(30, 40), range(60, 70)]),
        ("temporal_order_3bit", "hochreiter", 100, [range(9, 20), range(32, 43), range(65, 76)]),
        ("temporal_order_3bit", "hochreiter", 200, [range(19, 40), range(65, 86), range(131, 152)]),
    ],
)
def test_positions_are_exactly_the_windows(name, convention, length, windows):
    task = tasks.by_name(name, length=length, convention=convention)
    sequences = read_back(task, 2000, seed=0)
    positions = np.array([np.flatnonzero(np.isin(letters, ["A", "B"])) for letters, _ in sequences])
    for seen, window in zip(positions.T, windows, strict=True):
        assert set(seen.tolist()) == set(window)


@pytest.mark.parametrize("name", CLASSIFICATION)
@pytest.mark.parametrize("convention", tasks.CONVENTIONS)
def test_classes_and_distractors_are_equally_likely(name, convention):
    task = tasks.by_name(name, length=20, convention=convention)
    letters, classes = zip(*read_back(task, 8000, seed=2), strict=True)
    shares = np.bincount(classes, minlength=task.outputs) / len(classes)
    sigma = np.sqrt(task.constant_guess * (1 - task.constant_guess) / len(classes))
    np.testing.assert_allclose(shares, task.constant_guess, atol=4 * sigma)
    assert task.constant_guess == 1 / task.outputs
    text = np.concatenate(letters)
    counts = np.array([(text == letter).sum() for letter in "cdef"])
    np.testing.assert_allclose(counts / counts.sum(), 0.25, atol=4 * np.sqrt(0.19 / counts.sum()))


@pytest.mark.parametrize("name", CLASSIFICATION)
@pytest.mark.parametrize(
    ("convention", "inputs"), [("author", 6), ("pascanu", 6), ("hochreiter", 8)]
)
def test_only_hochreiter_has_a_start_and_a_trigger_symbol(name, convention, inputs):
    assert tasks.by_name(name, convention=convention).inputs == inputs
