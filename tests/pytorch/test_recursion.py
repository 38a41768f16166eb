"""The kernel's recursions and unit passes against the Python ones, which any device can run."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from gradsieve.torch.evidence.forward import run_layer
from gradsieve.torch.evidence.local import LSTMLocal, TanhLocal, UnitwiseLocal, linearise
from gradsieve.torch.evidence.recursion import (
    Added,
    Scaled,
    pull_back,
    pull_back_in_python,
    push_forward,
    push_forward_in_python,
)
from gradsieve.torch.modules import cells

CELLS = {"tanh": cells.TANH, "relu": cells.RELU, "gru": cells.GRU, "lstm": cells.LSTM}
SIZES = [(6, 3, 5), (4, 13, 33), (3, 1, 1), (5, 2, 100)]


def layer(name: str, size: tuple[int, int, int], dtype: torch.dtype):
    steps, batch, hidden = size
    cell = CELLS[name]
    gates = len(cell.gates)
    torch.manual_seed(hidden)
    scale = 1.5 / hidden**0.5
    weights = {
        "weight_ih": torch.randn(gates * hidden, 2),
        "weight_hh": scale * torch.randn(gates * hidden, hidden),
        "bias_hh": torch.randn(gates * hidden),
    }
    weights = {key: value.to(dtype) for key, value in weights.items()}
    initial = tuple(torch.randn(batch, hidden).to(dtype) for _ in range(cell.states))
    return run_layer(cell, weights, torch.randn(steps, batch, 2).to(dtype), initial)


def like(run, count: int) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn_like(run.after[0]) for _ in range(count))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CELLS)
def test_both_ways_back_give_the_same_deltas_and_changes(name, size, dtype):
    run = layer(name, size, dtype)
    local, weight = linearise(run), run.weights["weight_hh"]
    parts = run.cell.states
    exponents = torch.randint(-3, 4, run.after[0].shape[:2], dtype=torch.int32)
    entering = Scaled(like(run, parts), exponents)
    fast, slow = pull_back(local, weight, entering), pull_back_in_python(local, weight, entering)
    assert torch.equal(fast.exponents, slow.exponents)
    close = (
        {"rtol": 2e-4, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-12}
    )
    torch.testing.assert_close(fast.delta, slow.delta, **close)
    more = Added(torch.randn_like(run.a), [None, *like(run, parts)][1:])
    fast, slow = (
        way(local, weight, entering, copy.deepcopy(more), slow.exponents)
        for way in (pull_back, pull_back_in_python)
    )
    torch.testing.assert_close(fast.delta, slow.delta, **close)
    for one, other in zip(fast.g, slow.g, strict=True):
        torch.testing.assert_close(one, other, **close)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CELLS)
def test_both_ways_forward_give_the_same_changes(name, size):
    run = layer(name, size, torch.float64)
    local, weight = linearise(run), run.weights["weight_hh"]
    for R in (None, like(run, run.cell.states)):
        explicit = torch.randn_like(run.a)
        fast = push_forward(local, weight, explicit.clone(), R)
        slow = push_forward_in_python(local, weight, explicit, R)
        torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
def test_the_kernels_lstm_units_are_what_autograd_finds(size):
    run = layer("lstm", size, torch.float64)
    # There x holds both products and a is a zero without memory of its own.
    fast, slow = (
        linearise(run),
        UnitwiseLocal(replace(run, products=(run.x, torch.zeros_like(run.x)))),
    )
    assert isinstance(fast, LSTMLocal)
    torch.testing.assert_close(fast.K, slow.K, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(fast.L, slow.L, rtol=1e-9, atol=1e-12)
    g, change = like(run, 2), like(run, 2)
    da = torch.randn_like(run.a)
    bent, expected = (local.bend(g, None, da, lambda i: change[i], {}) for local in (fast, slow))
    torch.testing.assert_close(bent.a, expected.a, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(bent.state[1], expected.state[1], rtol=1e-9, atol=1e-12)
    assert float(expected.state[0].abs().max()) == 0


@pytest.mark.parametrize("size", SIZES)
def test_a_tanh_layer_told_by_its_states_is_what_autograd_finds(size):
    run = layer("tanh", size, torch.float64)
    fast, slow = linearise(run), UnitwiseLocal(run)
    assert isinstance(fast, TanhLocal)
    torch.testing.assert_close(fast.K, slow.K, rtol=1e-9, atol=1e-12)
    g, change, da = like(run, 1), like(run, 1), torch.randn_like(run.a)
    bent, expected = (local.bend(g, None, da, lambda i: change[i], {}) for local in (fast, slow))
    torch.testing.assert_close(bent.a, expected.a, rtol=1e-9, atol=1e-12)
    assert float(expected.state[0].abs().max()) == 0


@pytest.mark.parametrize("name", CELLS)
def test_nothing_injected_is_as_good_as_zeros(name):
    run = layer(name, (6, 3, 5), torch.float64)
    local, weight = linearise(run), run.weights["weight_hh"]
    units = torch.randint(-3, 4, run.after[0].shape[:2], dtype=torch.int32)
    more = Added(torch.randn_like(run.a), list(like(run, run.cell.states)))
    zeros = Scaled(tuple(torch.zeros_like(part) for part in run.after), units)
    expected = pull_back_in_python(local, weight, zeros, more, units)
    for way, left_out in ((pull_back, {"keep_g": False}), (pull_back_in_python, {})):
        found = way(local, weight, None, copy.deepcopy(more), units, **left_out)
        torch.testing.assert_close(found.delta, expected.delta, rtol=1e-10, atol=1e-12)


def test_what_is_not_finite_stays_so():
    run = layer("gru", (6, 3, 5), torch.float32)
    values = like(run, 1)
    values[0][-1, 1, 2] = torch.nan
    zero = torch.zeros(run.after[0].shape[:2], dtype=torch.int32)
    for way in (pull_back, pull_back_in_python):
        found = way(linearise(run), run.weights["weight_hh"], Scaled(values, zero))
        assert found.delta[0, 1].isnan().any()
        assert found.delta[0, 0].isfinite().all()
