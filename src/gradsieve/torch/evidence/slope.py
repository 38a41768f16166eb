"""The gradient of Q by the weights: by the kernel's adjoint, or by double backward.

Q is of sums over all calls, directions and processes, of which each carrier is a part. They are
known, so that the parts can be differentiated one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from gradsieve.network import Array
from gradsieve.sieve import Policy
from gradsieve.torch.evidence.double_backward import double_backward
from gradsieve.torch.evidence.ends import at_steps
from gradsieve.torch.evidence.gather import Measured
from gradsieve.torch.evidence.kernel_layer import Cotangent, KernelLayer
from gradsieve.torch.evidence.recursion import NOTHING, Scaled, rescaled
from gradsieve.torch.evidence.slow import window_weights
from gradsieve.torch.evidence.transport import Carried
from gradsieve.torch.measures import all_finite
from gradsieve.torch.modules.stack import Place, StackWeights

LN10 = math.log(10)


def q_gradient(measured: Measured, policy: Policy, together: bool) -> list[Tensor]:
    """∂Q/∂(parameter) for the parameters of one module, Q as the policy measures it."""
    parameters = measured.stack.parameters()
    total: list[Tensor] = []
    for transport in measured.transports:
        carried = [one for one in measured.carried if one.transport is transport]
        found = None
        if all(isinstance(layer, KernelLayer) for one in carried for layer in one.layers.values()):
            found = _by_kernel(measured, policy, carried, parameters)
        if found is None:
            found = double_backward(transport, measured, policy)
        total = [old + new for old, new in zip(total, found, strict=True)] if total else found
    total = total or [torch.zeros_like(parameter) for parameter in parameters]
    if together:
        for gradient in total:
            torch.distributed.all_reduce(gradient)
    return total


def _by_kernel(
    measured: Measured, policy: Policy, carried: list[Carried], parameters: list[nn.Parameter]
) -> list[Tensor] | None:
    """What one call adds; None where it leaves the range of a float, or there is no slope."""
    by_weight: list[tuple[Tensor, Tensor]] = []
    with torch.enable_grad():
        effective = measured.stack.weights()
    for one in carried:
        slopes = _slopes(one, measured, policy)
        if slopes is None:
            return None
        for place, found in slopes.items():
            for name, slope in found.items():
                weight = effective[place][name]
                if weight.requires_grad:
                    by_weight.append((weight, slope.to(weight.dtype)))
    if not by_weight or not all_finite([slope for _, slope in by_weight]):
        return None
    return _by_parameters(by_weight, parameters)


def _by_parameters(
    by_weight: list[tuple[Tensor, Tensor]], parameters: list[nn.Parameter]
) -> list[Tensor]:
    """∂Q/∂(parameter), from those by the weights that are parameters, or come from them."""
    own = {id(parameter) for parameter in parameters}
    found: dict[int, Tensor] = {}
    for weight, slope in by_weight:
        if id(weight) in own:
            found[id(weight)] = found[id(weight)] + slope if id(weight) in found else slope
    others = [pair for pair in by_weight if id(pair[0]) not in own]
    if others:
        weights, slopes = zip(*others, strict=True)
        more = torch.autograd.grad(
            weights, parameters, slopes, allow_unused=True, materialize_grads=True
        )
        for parameter, slope in zip(parameters, more, strict=True):
            found[id(parameter)] = found[id(parameter)] + slope if id(parameter) in found else slope
    return [
        found[id(parameter)] if id(parameter) in found else torch.zeros_like(parameter)
        for parameter in parameters
    ]


def _slopes(carried: Carried, measured: Measured, policy: Policy) -> StackWeights | None:
    """∂Q/∂(weight) of every layer that the carrier reaches; None where Q has no derivative."""
    layers = cast("dict[Place, KernelLayer]", carried.layers)
    if measured.slow is not None and measured.slow.count and len(layers) == 1:
        weights = window_weights(carried.carrier, policy.sieve.horizon, policy.sieve.window)
        share = 1 / (LN10 * measured.slow.count)
        return {place: one.slow_slopes(weights, share) for place, one in layers.items()}
    cotangents = _cotangents(carried, measured, policy)
    return None if cotangents is None else _adjoint(carried, cotangents)


def _adjoint(carried: Carried, cotangents: dict[Place, Cotangent]) -> StackWeights:
    """∂Q/∂(weight) of every layer that the carrier reaches (see kernel_layer)."""
    layers = cast("dict[Place, KernelLayer]", carried.layers)

    def push(place: Place, after: Callable[[Place], Tensor] | None) -> Tensor:
        below = None
        if after is not None:
            units = layers[place].deltas.exponents
            below = _changed_inputs(carried, place, after, units)
        return layers[place].push_cotangent(cotangents[place], below)

    def visit(place: Place, above: Scaled | None) -> bool:
        if place in layers:
            layers[place].adjoint(None if above is None else above.parts[0])
        return place in layers

    def by_inputs(place: Place) -> Scaled:
        units = torch.zeros_like(layers[place].deltas.exponents)  # adjoints are in units of 1
        return Scaled((layers[place].adjoint_by_inputs(),), units)

    carried.upwards(push)
    carried.downwards(visit, by_inputs)
    return {place: layer.slopes() for place, layer in layers.items()}


def _changed_inputs(
    carried: Carried, place: Place, after: Callable[[Place], Tensor], units: Tensor
) -> Tensor:
    """The change of a layer's inputs, from the units of the layers below into its own."""
    transport, way = carried.transport, place.direction
    true_units = transport.own_time(units, way)

    def in_units(low: Place) -> Tensor:
        wanted = transport.own_time(true_units, low.direction)
        return rescaled(after(low), wanted - carried.layers[low].deltas.exponents)

    return transport.own_time(transport.side_by_side(place.layer - 1, in_units), way)


def _cotangents(
    carried: Carried, measured: Measured, policy: Policy
) -> dict[Place, Cotangent] | None:
    """ψ = ∂Q/∂δ of every layer; None where Q has no derivative.

    Q is a sum over the examples of a function of ‖δ(last)‖ and of a far norm: that of the slow
    gradient, or that of the δ at the far step. So ψ is a multiple of δ(last), and of the far one.
    """
    carrier, sieve = carried.carrier, policy.sieve
    last = carrier.last.cpu().numpy()
    everyone = np.arange(len(last))
    usable = carrier.far_steps(sieve.horizon)[1].cpu().numpy()
    near = [at_steps(own, last.clip(min=0), everyone) for own in carried.own]
    if measured.slow is not None:
        weights = window_weights(carrier, sieve.horizon, sieve.window)
        far = [own.average(weights) for own in carried.own]
    else:
        step = carrier.far_steps(sieve.horizon)[0].cpu().numpy()
        weights = np.zeros((carrier.steps, len(last)))
        weights[step, everyone] = usable
        far = [at_steps(own, step, everyone) for own in carried.own]
    shares = _shares(measured, _Side(near), _Side(far), usable)
    if shares is None:
        return None
    by_near, by_far = shares
    found = {}
    for place, layer in carried.layers.items():
        delta = layer.deltas.delta
        shape, kind = tuple(delta.shape[1:]), delta.numpy().dtype
        psi = Cotangent(np.zeros(shape, kind), np.zeros(shape, kind), np.zeros(weights.shape))
        if place.direction == carrier.direction:
            (n, n_units), (s, s_units) = near[place.layer], far[place.layer]
            units = layer.deltas.exponents.numpy().astype(np.int64)
            psi = Cotangent(
                (by_near.times(2 * n_units, 1.0)[:, None] * n).reshape(shape).astype(kind),
                s.reshape(shape).astype(kind),
                # A δ that is zero stays zero; its units say nothing.
                by_far.times(units + s_units, np.where(units <= s_units, weights, 0.0)),
            )
        found[place] = psi
    return found


class _Side:
    """The norms of one end of every example, all layers together: root · 2**exponent."""

    def __init__(self, layers: list[tuple[Array, Array]]) -> None:
        squares = np.array([np.square(values, dtype=np.float64).sum(1) for values, _ in layers])
        units = np.array([units for _, units in layers], np.int64)
        self.exponent = np.where(squares > 0, units, NOTHING).max(0)
        shift = np.clip(2 * (units - self.exponent), -2000, 2000)
        self.root = np.sqrt(np.ldexp(squares, shift).sum(0))
        self.some = self.root > 0


class _Factor:
    """A factor of each example, as value · 2**exponent."""

    def __init__(self, value: Array, exponent: Array) -> None:
        self.value, self.exponent = value, exponent

    def times(self, exponent: Array, share: Array | float) -> Array:
        """The factor · share · 2**exponent as numbers."""
        shift = np.where(share, np.clip(self.exponent + exponent, -2000, 1000), 0)
        product: Array = np.ldexp(self.value * share, shift)
        return product


def _shares(
    measured: Measured, near: _Side, far: _Side, usable: Array
) -> tuple[_Factor, _Factor] | None:
    """By what δ(last) and the far one are multiplied to give ψ."""
    if measured.slow is not None:
        if not measured.slow.count:
            return None
        # ∂ mean log10(‖δ(last)‖/‖s‖)
        counts = usable & near.some & far.some
        mean = 1 / (LN10 * measured.slow.count)
        return (
            _Factor(_divided(mean, near.root**2, counts), -2 * near.exponent),
            _Factor(_divided(-mean, far.root**2, counts), -2 * far.exponent),
        )
    totals = measured.norms
    if not (totals.near_norm > 0 and totals.far_norm > 0):
        return None
    # ∂ log10(Σ‖δ(last)‖ / Σ‖δ(far)‖)
    by_near = _divided(1 / (LN10 * totals.near_norm), near.root, usable & near.some)
    by_far = _divided(-1 / (LN10 * totals.far_norm), far.root, usable & far.some)
    return (
        _Factor(by_near, -near.exponent - totals.near_exponent),
        _Factor(by_far, -far.exponent - totals.far_exponent),
    )


def _divided(one: float, by: Array, where: Array) -> Array:
    result: Array = np.divide(one, by, out=np.zeros(len(by)), where=where)
    return result
