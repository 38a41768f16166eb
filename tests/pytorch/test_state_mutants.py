"""A state of the sieve that was damaged is refused as a whole, or is one that it could have had."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from states import own_part
from torch import nn

import gradsieve.torch as gst
from mutants import TIMES, right_or_refused

ODD = (
    -1, 0, 1.5, 2, 10**30, math.nan, math.inf, -math.inf, True, None, "", "12", [], [1], {},
    {"x": -3}, b"\0", torch.tensor([1.0, math.nan]), object(),
)  # fmt: skip


def stepped() -> tuple[nn.GRU, gst.Sieve]:
    torch.manual_seed(0)
    module = nn.GRU(2, 4)
    optimizer = gst.Sieve(module, torch.optim.Adam(module.parameters(), lr=1e-2))
    for _ in range(3):
        step(module, optimizer)
    return module, optimizer


def step(module: nn.GRU, optimizer: gst.Sieve) -> None:
    optimizer.zero_grad()
    module(torch.ones(6, 2, 2))[0][-1].square().sum().backward()
    optimizer.step()


def places(state: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a nested dict."""
    yield path
    if isinstance(state, dict):
        for name, value in state.items():
            yield from places(value, (*path, name))


def replaced(state: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(state)
    at = changed["gradsieve"]
    for name in path[:-1]:
        at = at[name]
    if path:
        at[path[-1]] = value
    else:
        changed["gradsieve"] = value
    return changed


@pytest.mark.filterwarnings("ignore:the sieve has left out")
def test_mutants_of_a_state_are_refused_as_a_whole_or_can_go_on() -> None:
    module, optimizer = stepped()
    state = copy.deepcopy(optimizer.state_dict())
    before = own_part(state)
    spots = list(places(state["gradsieve"]))
    chance = random.Random(0)
    refused = 0
    for _ in range(round(600 * TIMES)):
        damaged = replaced(state, chance.choice(spots), chance.choice(ODD))
        taken = right_or_refused(
            lambda damaged=damaged: optimizer.load_state_dict(damaged), lambda found: found is None
        )
        if not taken:
            refused += 1
            assert own_part(optimizer.state_dict()) == before, "refused, and yet changed"
            continue
        step(module, optimizer)
        own = optimizer.state_dict()["gradsieve"]
        assert all(count >= 0 for count in own["counts"].values())
        optimizer.load_state_dict(copy.deepcopy(state))
    assert refused > 100
    weights = [weight.isfinite().all() for weight in module.parameters()]
    assert all(weights)
