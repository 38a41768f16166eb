"""AutoClip's threshold is the quantile of the norms so far, in the core and around PyTorch."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.errors import InvalidArgument
from gradsieve.recipe import Optimiser
from gradsieve.training.auto_clip import AutoClip
from gradsieve.training.descent import Descent

NORMS = st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=60)


@given(NORMS, st.sampled_from([0.05, 0.1, 0.5, 0.9]))
def test_the_threshold_is_the_quantile_to_within_a_bin(norms: list[float], share: float) -> None:
    clip = AutoClip(share)
    for norm in norms:
        clip.observe(norm)
    exact = float(np.quantile(norms, share, method="inverted_cdf"))
    assert exact * (1 - 1e-9) <= clip.threshold <= exact * 2 ** (1 / 32) * (1 + 1e-9)


def test_nothing_is_clipped_before_a_norm_was_seen_and_no_norm_is_none() -> None:
    clip = AutoClip()
    for norm in (0.0, math.nan, math.inf):
        clip.observe(norm)
    assert clip.threshold == math.inf


@given(NORMS)
def test_the_history_goes_through_json(norms: list[float]) -> None:
    one, other = AutoClip(), AutoClip()
    for norm in norms:
        one.observe(norm)
    other.restore(one.state())
    assert other.counts == one.counts


@pytest.mark.parametrize(
    "state", [None, [1], {"a": 1}, {"1": 0}, {"1": -3}, {"1": 1.5}, {"9" * 9: 1}, {"1": True}]
)
def test_a_history_that_is_none_is_refused_and_changes_nothing(state: object) -> None:
    clip = AutoClip()
    clip.observe(2.0)
    before = dict(clip.counts)
    with pytest.raises(InvalidArgument, match="history of gradient norms"):
        clip.restore(state)
    assert clip.counts == before


def test_the_core_clips_at_the_quantile_of_the_scaled_gradients() -> None:
    net = gs.SRN.random(2, 5, 2, seed=0)
    descent = Descent(net, Optimiser(learning_rate=0.5, momentum=0.0, clip="auto"))
    rng = np.random.default_rng(0)
    norms = []
    for _ in range(40):
        gradient = rng.standard_normal(net.flat.size).astype(net.dtype) * rng.lognormal()
        norms.append(float(np.linalg.norm(gradient)))
        descent.observe(gradient)
        length = float(np.linalg.norm(descent.propose(gradient))) / 0.5
        exact = float(np.quantile(norms, 0.1, method="inverted_cdf"))
        assert length == pytest.approx(min(norms[-1], exact), rel=0.023)


def test_a_run_with_auto_goes_on_bit_for_bit(tmp_path: Path) -> None:
    task = gs.tasks.temporal_order(length=10)
    settings = {"clip": "auto", "iterations": 5, "sizes": (50, 20, 20), "batch": 5}
    net = gs.SRN.random(task.inputs, 8, task.outputs, output=task.output, seed=1)
    whole = gs.train(net, task, epochs=6, **settings)
    seen = []

    def stop_at_three(record: dict) -> None:
        seen.append(record)
        if len(seen) == 3:
            raise KeyboardInterrupt

    gs.train(net, task, epochs=6, **settings, folder=tmp_path, on_record=stop_at_three)
    again = gs.train(net, task, epochs=6, **settings, folder=tmp_path)
    np.testing.assert_array_equal(again.final.flat, whole.final.flat)
    assert whole.recipe.optimiser.clip == "auto"
