"""Clipping around PyTorch: at a threshold or AutoClip's, alone and in the sieve."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.errors import InvalidArgument


def backward(module: nn.Module, scale: float = 1.0) -> None:
    module.zero_grad()
    (scale * module(torch.randn(9, 4, 3))[0][-1].sum()).backward()


def norm_of(module: nn.Module) -> float:
    return float(torch.nn.utils.get_total_norm([one.grad for one in module.parameters()]))


def test_a_fixed_threshold_does_what_pytorch_does():
    one, other = nn.GRU(3, 4), nn.GRU(3, 4)
    other.load_state_dict(one.state_dict())
    clip = gst.Clip(2.0)
    for scale in (0.01, 10.0):
        for module in (one, other):
            torch.manual_seed(1)
            backward(module, scale)
        expected = torch.nn.utils.clip_grad_norm_(other.parameters(), 2.0)
        assert clip(one.parameters()) == pytest.approx(float(expected))
        for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, theirs.grad)
    assert (clip.steps, clip.bites) == (2, 1)


def test_auto_clips_at_the_quantile_of_all_norms_so_far():
    module, clip, norms = nn.GRU(3, 4), gst.Clip("auto", quantile=0.5), []
    for _ in range(20):
        backward(module, float(torch.rand(()).exp()))
        norms.append(clip(module.parameters()))
        exact = float(np.quantile(norms, 0.5, method="inverted_cdf"))
        assert norm_of(module) == pytest.approx(min(norms[-1], exact), rel=0.023)
    assert 5 <= clip.bites <= 15
    other = gst.Clip("auto", quantile=0.5)
    other.load_state_dict(clip.state_dict())
    assert (other.threshold, other.steps, other.bites) == (clip.threshold, 20, clip.bites)


def test_a_gradient_that_is_not_finite_is_left_and_enters_no_history():
    module, clip = nn.GRU(3, 4), gst.Clip("auto")
    backward(module)
    clip(module.parameters())
    before = clip.threshold
    backward(module, math.nan)
    assert math.isnan(clip(module.parameters()))
    assert (clip.threshold, clip.steps) == (before, 1)


@pytest.mark.parametrize("bad", [0, -1, "Auto", None, math.nan])
def test_a_threshold_that_is_none_is_refused(bad):
    with pytest.raises(InvalidArgument, match="must be a number above 0"):
        gst.Clip(bad)


@pytest.mark.parametrize("clip", [0.5, "auto"])
def test_the_sieve_clips_before_it_judges(clip):
    """As a loop that clips by hand, and then steps with the sieve."""
    ends = []
    for inside in (True, False):
        torch.manual_seed(0)
        module = nn.RNN(3, 6)
        inner = torch.optim.SGD(module.parameters(), lr=0.1)
        optimizer = gst.Sieve(module, inner, "hold", clip=clip if inside else None)
        own = gst.Clip(clip)
        for _ in range(6):
            backward(module)
            if not inside:
                own(module.parameters())
            optimizer.step()
        ends.append([p.detach().clone() for p in module.parameters()])
        assert (optimizer.clip or own).bites > 0
    for one, other in zip(*ends, strict=True):
        torch.testing.assert_close(one, other)


def test_the_history_is_in_the_checkpoint():
    module = nn.GRU(3, 4)
    first = gst.Sieve(module, torch.optim.Adam(module.parameters()), clip="auto")
    for _ in range(3):
        backward(module)
        first.step()
    state = first.state_dict()
    second = gst.Sieve(module, torch.optim.Adam(module.parameters()), clip="auto")
    second.load_state_dict(state)
    assert second.clip.state_dict() == first.clip.state_dict()
    broken = {**state, "gradsieve": {**state["gradsieve"], "clip": {"steps": -1, "bites": 0}}}
    with pytest.raises(InvalidArgument, match=r"no state of gst\.Clip"):
        first.load_state_dict(broken)
    assert first.clip.state_dict() == second.clip.state_dict()


def test_a_watch_says_how_the_sieves_clipping_bites():
    module = nn.GRU(3, 4)
    optimizer = gst.Sieve(module, torch.optim.Adam(module.parameters()), clip="auto")
    look = gst.watch(module, optimizer, every=1)
    for scale in (1.0, 100.0):
        backward(module, scale)
        reading = look.read()
        assert ("clip/threshold" in reading) == (scale > 1)  # there is none at the first step
        optimizer.step()
    assert reading["clip/share"] == 1.0
    assert reading["clip/factor"] == pytest.approx(
        reading["clip/threshold"] / reading["gradient_norm"]
    )
