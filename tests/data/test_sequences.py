"""Minibatches, parts and scaling hold what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradsieve.data import Scaling, Sequences, from_arrays, split
from gradsieve.errors import InvalidArgument, InvalidFile
from gradsieve.flow import backpropagate
from gradsieve.network import SRN


def random_sequences(
    lengths: list[int], classes: int = 3, per_step: bool = False, seed: int = 0
) -> Sequences:
    generator = np.random.default_rng(seed)
    total = sum(lengths) if per_step else len(lengths)
    return from_arrays(
        [generator.standard_normal((length, 2)) * 3 + 5 for length in lengths],
        np.arange(total) % classes,
        classes=[f"class {number}" for number in range(classes)],
        per_step=per_step,
    )


@settings(max_examples=30, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    per_step=st.booleans(),
)
def test_a_minibatch_of_unequal_lengths_has_the_gradient_of_its_sequences_alone(
    lengths: list[int], per_step: bool
) -> None:
    data = random_sequences(lengths, per_step=per_step)
    net = SRN.random(2, 5, 3, variance=0.3, seed=1, dtype=np.float64)
    u, t, starts = data.padded(dtype=np.float64)
    together = backpropagate(net, u, t, "reference", starts)
    alone = [
        backpropagate(net, *data.padded([n], dtype=np.float64)[:2], "reference")
        for n in range(data.count)
    ]
    assert together.loss == pytest.approx(sum(flow.loss for flow in alone), rel=1e-12)
    np.testing.assert_allclose(
        together.gradient.flat, sum(flow.gradient.flat for flow in alone), rtol=1e-9, atol=1e-12
    )


@settings(max_examples=50, deadline=None)
@given(
    count=st.integers(15, 80),
    seed=st.integers(0, 99),
    validation=st.sampled_from([0.1, 0.2, 0.3]),
    test=st.sampled_from([0.0, 0.2, 0.3]),
)
def test_parts_are_disjoint_complete_and_hold_every_class_in_training(
    count: int, seed: int, validation: float, test: float
) -> None:
    data = random_sequences([2] * count)
    parts = split(data, validation, test, seed)
    names = [
        name for part in (parts.train, parts.validation, parts.test) if part for name in part.names
    ]
    assert sorted(names) == sorted(data.names)
    assert all(parts.train.class_counts().values())
    assert abs(parts.validation.count - validation * count) <= 2.5
    again = split(data, validation, test, seed)
    assert again.train.names == parts.train.names


def test_other_seeds_give_other_parts() -> None:
    data = random_sequences([2] * 40)
    assert split(data, seed=0).train.names != split(data, seed=1).train.names


def test_scaling_is_learned_on_what_it_is_given_and_undone_for_targets() -> None:
    generator = np.random.default_rng(0)
    sequences = [generator.standard_normal((6, 2)) * [1e-3, 1e7] + [3, -1e9] for _ in range(9)]
    data = from_arrays(sequences, generator.standard_normal((9, 1)) * 40 + 7)
    scaling = Scaling.of(data)
    scaled = scaling.scaled(data)
    np.testing.assert_allclose(scaled.values.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(scaled.values.std(axis=0), 1, rtol=1e-6)
    np.testing.assert_allclose(scaling.outputs(scaled.targets), data.targets, rtol=1e-12)
    back = Scaling.from_json(scaling.as_json(), 2, 1)
    np.testing.assert_array_equal(back.inputs(data.values), scaled.values)


def test_a_feature_that_never_changes_is_only_moved() -> None:
    data = from_arrays([np.full((4, 1), 1e300)], [[1.0]])
    assert Scaling.of(data).scaled(data).values.tolist() == [[0.0]] * 4


def test_a_damaged_scaling_is_refused() -> None:
    with pytest.raises(InvalidFile, match="spread"):
        Scaling.from_json({"mean": [0.0], "spread": [0.0]}, 1, 1)


def test_too_few_series_cannot_be_split() -> None:
    with pytest.raises(InvalidArgument, match="too few to split"):
        split(random_sequences([2, 2, 2]))
