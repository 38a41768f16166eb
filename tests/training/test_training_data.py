"""The sequences of a run: drawn apart from each other, gathered as they were given."""

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.training import Stacked
from gradsieve.training.data import draw

TASK = gs.tasks.temporal_order(length=20, convention="pascanu")
NET = gs.SRN.random(TASK.inputs, 5, TASK.outputs, output=TASK.output)


def test_training_validation_and_test_sequences_differ_and_come_from_the_seed():
    first, same, other = (draw(TASK, NET, (40, 30, 20), seed) for seed in (3, 3, 4))
    for part, count in (("train", 40), ("validation", 30), ("test", 20)):
        assert len(getattr(first, part)) == count
        assert np.array_equal(getattr(first, part).u, getattr(same, part).u)
        assert not np.array_equal(getattr(first, part).u, getattr(other, part).u)
    assert not np.array_equal(first.train.u[:20], first.test.u)
    assert not np.array_equal(first.train.u[:30], first.validation.u)


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("classes", [False, True])
def test_a_minibatch_is_these_sequences_with_time_first(per_step, classes):
    rng = np.random.default_rng(0)
    u, starts = rng.normal(size=(9, 4, 3)), rng.integers(0, 3, 9)
    shape = (9, 4) if per_step else (9,)
    t = rng.integers(0, 5, shape) if classes else rng.normal(size=(*shape, 2))
    indices = np.array([7, 0, 7])
    batch_u, batch_t, batch_starts = Stacked(u, t, starts).batch(indices)
    assert batch_u.shape == (4, 3, 3)
    for column, index in enumerate(indices):
        assert np.array_equal(batch_u[:, column], u[index])
        assert np.array_equal(batch_t[:, column] if per_step else batch_t[column], t[index])
        assert batch_starts[column] == starts[index]


def test_sequences_that_do_not_fit_the_network_are_refused():
    with pytest.raises(gs.InvalidArgument, match="u has shape"):
        draw(TASK, gs.SRN.random(TASK.inputs + 1, 5, TASK.outputs), (4, 3, 2), 0)
