"""The baselines do what their papers say, by differences and by counting."""

import numpy as np
import pytest

import gradsieve as gs
from gradsieve.errors import InvalidArgument
from gradsieve.experiments.baselines import Listing, RandomSkip, Regularised, regulariser_gradient
from gradsieve.recipe import Recipe, Sieve
from gradsieve.training import Stepper


def batch(seed=0):
    task = gs.tasks.temporal_order(length=12)
    net = gs.SRN.random(task.inputs, 6, task.outputs, variance=0.2, seed=seed, dtype=np.float64)
    return task, net, *minibatch(task, 5, seed)


def minibatch(task, count, seed):
    u, t = task.sample(count, seed=seed)
    return u.astype(np.float64), t


def stepper(net, baseline, recipe):
    return Stepper(net.copy(), recipe, extension=baseline.extension(recipe))


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_the_regularisers_gradient_is_the_immediate_derivative_of_omega(engine):
    _, net, u, t = batch()
    flow = gs.backpropagate(net, u, t, engine=engine)
    deltas, slopes = flow.deltas, np.array(flow.slopes)

    def omega(w_rec):
        near = deltas[1:]
        far = (near @ w_rec.T) * slopes[:-1]
        ratio = np.linalg.norm(far, axis=2) / np.linalg.norm(near, axis=2)
        return ((ratio - 1) ** 2).sum() / near.shape[1]

    direction = np.random.default_rng(2).normal(size=net.w_rec.shape)
    step = 1e-6
    slope = (omega(net.w_rec + step * direction) - omega(net.w_rec - step * direction)) / (2 * step)
    assert (regulariser_gradient(flow) * direction).sum() == pytest.approx(slope, rel=1e-6)


def test_the_regulariser_pulls_the_ratios_towards_one():
    _, net, u, t = batch()

    def trained(weight):
        recipe = Recipe().replaced(learning_rate=1e-3, momentum=0.0)
        own = stepper(net, Regularised(weight), recipe)
        for _ in range(200):
            own.step(u, t, None)
        norms = np.linalg.norm(gs.backpropagate(own.net, u, t).deltas, axis=2)
        return ((norms[:-1] / norms[1:] - 1) ** 2).mean()

    assert trained(weight=100.0) < 0.5 * trained(weight=0.0)


def test_random_skipping_keeps_the_share_that_it_is_told_to():
    task, net, *_ = batch()
    own = stepper(net, RandomSkip(kept=0.3), Recipe())
    outcomes = [own.step(*minibatch(task, 2, seed), None) for seed in range(600)]
    assert np.mean([outcome.verdict.keep for outcome in outcomes]) == pytest.approx(0.3, abs=0.06)


def test_random_skipping_judges_the_same_minibatch_alike():
    _, net, u, t = batch()
    first, second = (stepper(net, RandomSkip(0.5), Recipe()).step(u, t, None) for _ in "ab")
    assert first.verdict.keep == second.verdict.keep


@pytest.mark.parametrize("Q", [-2.0, 2.0])
def test_the_listing_as_printed_keeps_what_the_text_leaves_out(Q):
    sieve = Sieve("skip", estimator="frozen")
    printed = Listing().extension(Recipe(sieve=sieve)).policy
    meant = sieve.at_work()
    for dS in (-0.5, 0.5):
        assert printed.keeps(meant.wanted(Q), dS) != meant.keeps(meant.wanted(Q), dS)
    with pytest.raises(InvalidArgument, match="sieve is None"):
        Listing().extension(Recipe())
