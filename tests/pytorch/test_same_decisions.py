"""The core and PyTorch come to the same verdicts and make the same corrections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from twins import INPUTS, Twins

import gradsieve as gs
from gradsieve.sieve import Reason

STEPS = 30
POLICIES = {
    "auto": gs.Sieve("auto", q_range=(-9.0, 1.86)),  # about half of all looks are in range
    "auto, every third": gs.Sieve("auto", q_range=(-9.0, 1.86), every=3),
    "hold": gs.Sieve("hold", q_range=(-9.0, 0.2), steer_rate=0.01),
    "hold, unbounded": gs.Sieve("hold", q_range=(-9.0, 0.2), steer_rate=0.01, limit=math.inf),
    "hold, every other": gs.Sieve("hold", q_range=(-9.0, 0.2), every=2, window=0.4),
    "hold, exploded": gs.Sieve("hold", q_range=(3.0, 9.0), horizon=5),
    "steer": gs.Sieve("steer", q_range=(-0.5, 0.5), horizon=6),
    "skip, frozen": gs.Sieve("skip", q_range=(-0.2, 0.2), estimator="frozen"),
    "skip, bounded": gs.Sieve("skip", estimator="frozen", max_change=0.01, on_skip="decay"),
    "skip, stalling": gs.Sieve("skip", estimator="frozen", max_change=1e-9, stall_after=3),
}


@pytest.mark.usefixtures("float64")
@pytest.mark.filterwarnings("ignore:the sieve has left out")
@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("name", POLICIES)
def test_a_training_has_the_verdicts_and_the_weights_of_the_core(name, momentum):
    twins = Twins(POLICIES[name], rate=1e-2, momentum=momentum)
    numbers = np.random.default_rng(0)
    reasons = set()
    for _ in range(STEPS):
        core, torch = twins.step(
            numbers.standard_normal((8, 1, INPUTS)), numbers.standard_normal((1, 1))
        )
        assert torch.reason is core.reason
        assert torch.keep == core.keep
        for mine, theirs in ((torch.Q, core.Q), (torch.relative, core.relative)):
            assert mine == pytest.approx(theirs, rel=1e-6, nan_ok=True)
        twins.assert_same_weights()
        reasons.add(core.reason)
    if name.startswith(("hold", "steer")) or name == "auto":
        assert any(reason.corrected for reason in reasons)
    assert len(reasons) > 1 or not name.startswith("skip")
    assert (Reason.STALL_BROKEN in reasons) == (name == "skip, stalling")


@pytest.mark.usefixtures("float64")
def test_a_lack_that_is_not_finite_is_refused_by_both():
    """An infinite input gives a slope that is no number, and nothing moves."""
    twins = Twins(POLICIES["hold"], rate=1e-2)
    u, t = np.zeros((8, 1, INPUTS)), np.ones((1, 1))
    u[0] = np.nan
    core, torch = twins.step(u, t)
    assert core.reason is torch.reason is Reason.NOT_FINITE
    twins.assert_same_weights(rtol=0)
