"""One recurrent module, looked at: each layer's reach, the gradient by lag, and its gates."""

from __future__ import annotations

import math
from functools import cache

import torch

from gradsieve.change import WINDOW
from gradsieve.judgement import LayerReading
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.recursion import Deltas
from gradsieve.torch.evidence.slow import slow_sum
from gradsieve.torch.evidence.transport import Transport, carry
from gradsieve.torch.modules.cells import Cell
from gradsieve.torch.modules.record import Chain
from gradsieve.torch.modules.sequences import sequences
from gradsieve.torch.modules.stack import LayerWeights, Place, Stack, StackWeights
from gradsieve.torch.watching.lags import coarse_lags, norms_by_lag, reach
from gradsieve.torch.watching.reading import LayerLook
from gradsieve.torch.watching.saturation import saturated_share


def look_at(
    stack: Stack, chain: Chain, weights: StackWeights, earlier: StackWeights | None, highest: float
) -> list[LayerLook]:
    """Every layer and direction that the last gradient of these calls reaches.

    Args:
        stack: the module.
        chain: its calls, as one.
        weights: those that it has now.
        earlier: those that it had at the last look.
        highest: the upper end of slow Q's range, by which the reach is told.
    """
    like = weights[Place(0, 0)]["weight_hh"]
    transport = Transport(stack, weights, sequences(stack, chain, like))
    if not transport.follows:
        return []
    looks = []
    for carrier in transport.carriers:
        longest = int(carrier.last.max())
        if longest < 1:
            continue  # its gradient enters at the first step: there is no lag to look at
        carried = carry(transport, carrier)
        for place, own in zip(carried.own_places, carried.own, strict=True):
            curve = norms_by_lag(carrier, own)

            @cache
            def slow_Q(lag: int | None, carrier: Carrier = carrier, own: Deltas = own) -> float:
                return slow_sum(carrier, [own], lag, WINDOW).Q

            seen = LayerReading(
                slow_Q(None),
                reach(slow_Q, longest, highest),
                longest,
                saturated_share(transport.runs[place]),
                _name(stack, place),
            )
            shares = {} if earlier is None else _shares(stack.cell, weights[place], earlier[place])
            Q = curve[0] - curve[-1] if math.isfinite(curve[0]) else math.nan
            slow_curve = {lag: slow_Q(lag) for lag in coarse_lags(longest)}
            looks.append(LayerLook(seen, Q, curve, slow_curve, shares))
    return looks


def _shares(cell: Cell, now: LayerWeights, then: LayerWeights) -> dict[str, float]:
    """By gate: its part in the square of how far the weights moved between two looks."""
    squares = torch.zeros(len(cell.gates), dtype=torch.float64)
    for name in ("weight_ih", "weight_hh"):
        moved = (now[name] - then[name]).double().reshape(len(cell.gates), -1)
        squares += moved.square().sum(1).cpu()
    total = float(squares.sum())
    if total == 0:
        return {}
    return {gate: float(part) / total for gate, part in zip(cell.gates, squares, strict=True)}


def _name(stack: Stack, place: Place) -> str:
    return f"{stack.label}/layer{place.layer}" + ("_reverse" if place.direction else "")
