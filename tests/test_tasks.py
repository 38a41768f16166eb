"""What all tasks have in common: shapes, determinism, scoring, errors."""

import itertools
import pickle
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsieve import tasks
from gradsieve.errors import InvalidArgument

EVERY = list(itertools.product(tasks.PAPERS, tasks.CONVENTIONS))
every_task = pytest.mark.parametrize(("name", "convention"), EVERY)


def checksum(*arrays):
    """Of the values, whatever the byte order of the machine."""
    total = 0
    for array in arrays:
        little = array.astype(array.dtype.newbyteorder("<"))
        total = zlib.crc32(np.ascontiguousarray(little).tobytes(), total)
    return total


@given(
    which=st.sampled_from(EVERY),
    length=st.integers(15, 130),
    count=st.integers(1, 20),
    seed=st.integers(0, 2**64),
)
@settings(deadline=None, max_examples=80)
def test_a_sample_has_the_declared_shapes_types_and_lengths(which, length, count, seed):
    name, convention = which
    task = tasks.by_name(name, length=length, convention=convention)
    u, t, starts = task.sample_with_starts(count, seed)
    assert u.shape == (task.steps, count, task.inputs)
    assert u.dtype == np.float32
    if task.output == "softmax":
        assert t.shape == (count,)
        assert t.dtype == np.int64
        assert 0 <= t.min() <= t.max() < task.outputs
    else:
        assert t.shape == (count, task.outputs)
        assert t.dtype == np.float32
    if starts is None:
        assert task.steps == length
    else:
        assert starts.shape == (count,)
        assert starts.dtype == np.int64
        assert starts.min() >= 0
        assert (task.steps - starts).min() >= length
        for example, start in enumerate(starts):
            assert not u[:start, example].any()


@every_task
def test_sample_is_sample_with_starts_without_the_starts(name, convention):
    task = tasks.by_name(name, length=40, convention=convention)
    u, t = task.sample(7, seed=3)
    u_again, t_again, _ = task.sample_with_starts(7, seed=3)
    np.testing.assert_array_equal(u, u_again)
    np.testing.assert_array_equal(t, t_again)
    assert not np.array_equal(u, task.sample(7, seed=4)[0])


@pytest.mark.parametrize(
    ("name", "convention", "expected"),
    [
        ("adding", "author", 0x55D4202E),
        ("adding", "pascanu", 0x45B29010),
        ("adding", "hochreiter", 0x7389F67F),
        ("multiplication", "author", 0xBF7A1204),
        ("multiplication", "pascanu", 0xA581683E),
        ("multiplication", "hochreiter", 0x535A82B5),
        ("temporal_order", "author", 0x8F75F12D),
        ("temporal_order", "pascanu", 0x44B92C54),
        ("temporal_order", "hochreiter", 0x531146A9),
        ("temporal_order_3bit", "author", 0x17F308AB),
        ("temporal_order_3bit", "pascanu", 0xD2AA41AD),
        ("temporal_order_3bit", "hochreiter", 0x71F60BEC),
    ],
)
def test_the_same_seed_gives_the_same_sequences_on_every_platform(name, convention, expected):
    u, t = tasks.by_name(name, length=50, convention=convention).sample(20, seed=12345)
    assert checksum(u, t) == expected


@pytest.mark.parametrize(
    ("name", "convention", "lengths"),
    [
        *((name, "author", {100}) for name in tasks.PAPERS),
        ("adding", "pascanu", set(range(100, 110))),
        ("multiplication", "pascanu", set(range(100, 110))),
        ("temporal_order", "pascanu", {100}),
        ("temporal_order_3bit", "pascanu", {100}),
        *((name, "hochreiter", set(range(100, 111))) for name in tasks.PAPERS),
    ],
)
def test_lengths_are_all_those_of_the_convention(name, convention, lengths):
    task = tasks.by_name(name, length=100, convention=convention)
    _, _, starts = task.sample_with_starts(1000, seed=0)
    seen = {task.steps} if starts is None else set((task.steps - starts).tolist())
    assert seen == lengths


@every_task
def test_a_task_is_given_back_by_its_description_and_survives_pickling(name, convention):
    task = tasks.by_name(name, length=60, convention=convention)
    again = tasks.by_name(task.name, task.length, task.convention, task.tolerance)
    assert again == task == pickle.loads(pickle.dumps(task))


@every_task
def test_the_targets_themselves_are_correct_and_wrong_answers_are_not(name, convention):
    task = tasks.by_name(name, length=60, convention=convention)
    _, t = task.sample(50, seed=0)
    if task.output == "softmax":
        right, wrong = np.eye(task.outputs)[t], np.eye(task.outputs)[(t + 1) % task.outputs]
    else:
        right, wrong = t, t + 1.01 * task.tolerance
    assert task.accuracy(right, t) == 1
    assert task.accuracy(wrong, t) == 0
    half = np.where(np.arange(50)[:, None] % 2, right, wrong)
    np.testing.assert_array_equal(task.correct(half, t), np.arange(50) % 2 == 1)
    assert task.accuracy(half, t) == 0.5


@pytest.mark.parametrize(
    ("convention", "at_tolerance"), [("author", True), ("pascanu", True), ("hochreiter", False)]
)
@pytest.mark.parametrize("name", ["adding", "multiplication"])
def test_an_error_of_exactly_the_tolerance_is_wrong_for_hochreiter_only(
    name, convention, at_tolerance
):
    task = tasks.by_name(name, convention=convention, tolerance=0.125)
    outputs = np.array([[0.125], [-0.125], [0.12]])
    expected = [at_tolerance, at_tolerance, True]
    assert task.correct(outputs, np.zeros((3, 1))).tolist() == expected


@every_task
@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
def test_an_output_that_is_not_finite_is_never_correct(name, convention, broken):
    task = tasks.by_name(name, length=60, convention=convention)
    _, t = task.sample(50, seed=0)
    assert task.accuracy(np.full((50, task.outputs), broken), t) == 0


def test_one_output_that_is_not_finite_spoils_a_class_answer():
    task = tasks.temporal_order(20)
    outputs = np.array([[np.nan, 0.9, 0.05, 0.05], [0.9, np.nan, 0.05, 0.05]])
    assert not task.correct(outputs, np.array([0, 1])).any()


@every_task
def test_a_length_one_short_of_the_shortest_is_refused_and_the_shortest_works(name, convention):
    with pytest.raises(InvalidArgument, match=r"length is 1; .* needs at least") as caught:
        tasks.by_name(name, length=1, convention=convention)
    shortest = int(str(caught.value).split("at least ")[1].split()[0])
    with pytest.raises(InvalidArgument, match=f"at least {shortest}"):
        tasks.by_name(name, length=shortest - 1, convention=convention)
    task = tasks.by_name(name, length=shortest, convention=convention)
    assert task.sample(100, seed=0)[0].shape[0] == task.steps


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"name": "sorting"}, "task is 'sorting'; it may be 'adding', 'multiplication'"),
        ({"convention": "mine"}, "convention is 'mine'; it may be 'author', 'pascanu'"),
        ({"length": 0}, "length is 0"),
        ({"length": 10.0}, "length is 10.0; it must be an integer"),
        ({"length": True}, "length is True"),
        ({"name": "adding", "tolerance": 0.0}, "tolerance is 0.0"),
        ({"name": "adding", "tolerance": float("nan")}, "tolerance is nan"),
        ({"tolerance": 0.1}, "tolerance is 0.1; temporal_order has classes"),
    ],
)
def test_a_bad_description_is_refused_by_name(arguments, says):
    with pytest.raises(InvalidArgument, match=says):
        tasks.by_name(**{"name": "temporal_order", **arguments})


@pytest.mark.parametrize(
    ("count", "seed", "says"),
    [
        (0, 0, "count is 0; it must be at least 1"),
        (-3, 0, "count is -3"),
        (2.5, 0, "count is 2.5; it must be an integer"),
        (1, -1, "seed is -1; it must be at least 0"),
        (1, None, "seed is None; it must be an integer"),
    ],
)
def test_a_bad_count_or_seed_is_refused_by_name(count, seed, says):
    with pytest.raises(InvalidArgument, match=says):
        tasks.adding(20).sample(count, seed)


@pytest.mark.parametrize(
    ("outputs", "t", "says"),
    [
        (np.zeros((3, 4)), np.zeros((3, 1), int), r"t has shape \(3, 1\)"),
        (np.zeros((3, 5)), np.zeros(3, int), r"outputs have shape \(3, 5\)"),
        (np.zeros(4), np.zeros(1, int), r"outputs have shape \(4,\)"),
        (np.zeros((0, 4)), np.zeros(0, int), r"outputs have shape \(0, 4\)"),
    ],
)
def test_outputs_and_targets_that_do_not_fit_are_refused(outputs, t, says):
    with pytest.raises(InvalidArgument, match=says):
        tasks.temporal_order(20).correct(outputs, t)
