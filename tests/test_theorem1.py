"""Theorem 1, measured: how often each estimator predicts the sign of the change really made.

The paper's theorem holds the slopes D(n) fixed; the update moves them too. Over
the first updates of a real training run, on the paper's temporal order problem with T = 100 and 100
units, the far gradient of the same minibatch is measured before and after each update. The bound
for `full` is what issue and design ask; `frozen` is recorded beside it.
"""

import numpy as np
import pytest

import gradsieve as gs

UPDATES = 100


def far_norm(flow):
    return np.linalg.norm(flow.deltas[0])


def sign_agreement(seed, learning_rate, momentum, clip=None):
    """Share of right signs of `full` and of `frozen`, and how often the norm really grew."""
    task = gs.tasks.temporal_order(length=100)
    net = gs.SRN.random(
        task.inputs, 100, task.outputs, task.output, variance=0.01, seed=seed, dtype=np.float64
    )
    u, t = task.sample(1000, seed=seed)
    velocity = np.zeros_like(net.flat)
    order = np.random.default_rng(seed)
    right = {"full": 0, "frozen": 0}
    grew = 0
    for _ in range(UPDATES):
        chosen = order.integers(0, 1000, 10)
        batch = u[:, chosen], t[chosen]
        before = gs.backpropagate(net, *batch)
        gradient = before.gradient.flat
        norm = np.linalg.norm(gradient)
        factor = clip / norm if clip is not None and norm > clip else 1.0
        velocity = momentum * velocity - learning_rate * factor * gradient
        net.flat[:] += velocity
        grows = far_norm(gs.backpropagate(net, *batch)) > far_norm(before)
        grew += grows
        for estimator in right:
            predicted = gs.norm_change(before, net.like(velocity), estimator=estimator).dS
            right[estimator] += (predicted > 0) == grows
    return right["full"] / UPDATES, right["frozen"] / UPDATES, grew / UPDATES


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_full_predicts_the_sign_of_the_change_early_in_training(seed, record_property, capsys):
    full, frozen, grew = sign_agreement(seed, learning_rate=1e-5, momentum=0.9)
    record_property("full", float(full))
    record_property("frozen", float(frozen))
    with capsys.disabled():
        print(
            f"\n  network {seed}: right signs full {full:.2f}, frozen {frozen:.2f}; grew {grew:.2f}"
        )
    assert full >= 0.95
    assert full > frozen
    assert 0.1 < grew < 0.9, "a sign that never changes would be no test"
