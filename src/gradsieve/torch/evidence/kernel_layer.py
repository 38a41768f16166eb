"""A layer of `layer.LinearLayer` in the compiled kernel, with the adjoint that gives slopes of Q.

The slope of Q by the weights is the adjoint of the way back. With ψ(n) = ∂Q/∂δ(n) held, Σ ψ(n)·δ(n)
is also how far ⟨γ, s(last)⟩ moves when ψ(n) is added to each product a(n). So the change of the
states along ψ is pushed forward, the Jacobians are bent along it, and what that adds to the deltas
is carried back: μ(n). Then

    ∂Q/∂W_hh = Σ δ(n)ᵀ dh(n−1) + μ(n)ᵀ h(n−1)      ∂Q/∂W_ih = Σ μ(n)ᵀ u(n)      ∂Q/∂b = Σ μ(n)

with the third gate of a GRU, which reads its products apart, counted on its own side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gradsieve.network import Array
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.forward import LayerRun
from gradsieve.torch.evidence.recursion import Deltas, Scaled
from gradsieve.torch.fast.layer import Passes
from gradsieve.torch.kernel_bridge import serves
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.followed import KINDS
from gradsieve.torch.modules.stack import LayerWeights, Place

NAMES = {cells.TANH: "tanh", cells.RELU: "relu", cells.GRU: "gru", cells.LSTM: "lstm"}


def kernel_serves(run: LayerRun) -> bool:
    """Whether the kernel knows this layer's cell, device and precision."""
    known = run.cell in NAMES and not cells.beyond_linear(run.weights)
    return known and serves(run.h, run.u, run.weights["weight_hh"])


class KernelDeltas(Deltas):
    """Deltas in the kernel's memory, looked into where somebody asks; g stays there."""

    def __init__(self, native: Any) -> None:
        object.__setattr__(self, "native", native)

    native: Any
    g = ()

    @cached_property
    def delta(self) -> Tensor:
        return torch.from_numpy(self.native.delta)

    @cached_property
    def exponents(self) -> Tensor:
        return torch.from_numpy(self.native.exponents)

    def average(self, weights: Array) -> tuple[Array, Array]:
        total, units = self.native.slow(weights)
        return total.reshape(len(total), -1), units

    def slow_ends(self, weights: Array, last: Array) -> Array:
        found: Array = self.native.slow_ends(weights, last)
        return found


@dataclass(frozen=True)
class Cotangent:
    """ψ of one layer in units of 2**−exponents: near at the last step, factors(n,b) · slow."""

    near: Array  # (B,G,H)
    slow: Array
    factors: Array  # (T,B), float64


class KernelLayer:
    """See `layer.LinearLayer`; all of it stands in one object of the kernel."""

    deltas: Deltas
    changed: Deltas

    def __init__(self, run: LayerRun, memory: Memory) -> None:
        self._weights = run.weights
        steps, batch, inputs = run.u.shape
        hidden = run.h.shape[2]
        key = (NAMES[run.cell], steps, batch, inputs, hidden, run.h.dtype)
        self._native = memory.take(key, lambda: KINDS[run.h.dtype](*key[:-1]))
        if run.passes is not None:
            _recall(self._native, run.passes, run.initial, run.weights)
            return
        initial = [*map(_array, run.initial), None][:2]
        self._native.load(_in_time(run.u), _in_time(run.h), initial, _arrays(run.weights))

    def reach(self, carrier: Carrier, place: Place, above: Scaled | None) -> None:
        own = place.direction == carrier.direction
        gamma = [_array(part) if own else None for part in carrier.gamma[place.layer]]
        self._last = carrier.last.to(torch.int64).numpy()
        self._native.pull(gamma, self._last, *_scaled(above))
        self.deltas = KernelDeltas(self._native)

    def by_inputs(self) -> Tensor:
        return torch.from_numpy(self._native.by_inputs(_array(self._weights["weight_ih"])))

    def push(self, update: LayerWeights, below: Tensor | None) -> Tensor:
        self._native.push_update(*_arrays(update), _in_time(below))
        return torch.from_numpy(self._native.after)

    def change(self, update: LayerWeights, above: Scaled | None) -> None:
        self._native.bend_update(*_arrays(update)[:2], *_scaled(above))
        change = torch.from_numpy(self._native.change)
        self.changed = Deltas(change, (), self.deltas.exponents)

    def change_by_inputs(self, update: LayerWeights) -> Tensor:
        weights = _array(self._weights["weight_ih"]), _array(update["weight_ih"])
        return torch.from_numpy(self._native.by_inputs(*weights, of_change=True))

    def push_cotangent(self, cotangent: Cotangent, below: Tensor | None) -> Tensor:
        """The change of the outputs along ψ, in units of 2**−exponents."""
        psi = cotangent.near, cotangent.slow, cotangent.factors
        self._native.push_cotangent(*psi, self._last, _in_time(below))
        return torch.from_numpy(self._native.after)

    def adjoint(self, above: Tensor | None) -> None:
        """μ, with the adjoint of the outputs from above; in units of 1."""
        self._native.bend_cotangent(_in_time(above))

    def adjoint_by_inputs(self) -> Tensor:
        """μ W_ih, (T,B,I)."""
        weight = _array(self._weights["weight_ih"])
        return torch.from_numpy(self._native.by_inputs(weight, of_change=True))

    def slopes(self) -> LayerWeights:
        """∂Q/∂(weight)."""
        return self._named(self._native.by_weights())

    def slow_slopes(self, weights: Array, share: float) -> LayerWeights:
        """∂Q/∂(weight) of Q = Σ share · ln(‖δ(last)‖/‖s‖), where this is the only layer.

        What `push_cotangent`, `adjoint` and `slopes` do, in one call of the kernel.
        """
        return self._named(self._native.slow_slopes(weights, self._last, share))

    def _named(self, found: tuple[Array, ...]) -> LayerWeights:
        pairs = zip(cells.LINEAR, found, strict=True)
        return {name: torch.from_numpy(one) for name, one in pairs if name in self._weights}


class FollowedLayer(KernelLayer):
    """A layer of ours that wrote its deltas itself; the rest is fetched where it is asked for."""

    def __init__(self, passes: Passes, native: Any) -> None:
        self._passes, self._native = passes, native
        self._last = native.last
        self._fetched = False
        self.deltas = KernelDeltas(native)

    @cached_property
    def _weights(self) -> LayerWeights:  # type: ignore[override]
        """As they are before the step, which changes them in place."""
        return {
            name: one.detach().clone()
            for name, one in zip(cells.LINEAR, self._passes.weights, strict=False)
        }

    def fetch(self) -> None:
        """The states and gates; before the weights change."""
        if not self._fetched:
            self._fetched = True
            _recall(self._native, self._passes, self._passes.initial, self._weights)

    def push(self, update: LayerWeights, below: Tensor | None) -> Tensor:
        self.fetch()
        return super().push(update, below)

    def change(self, update: LayerWeights, above: Scaled | None) -> None:
        self.fetch()
        super().change(update, above)

    def slow_slopes(self, weights: Array, share: float) -> LayerWeights:
        self.fetch()
        return super().slow_slopes(weights, share)

    def push_cotangent(self, cotangent: Cotangent, below: Tensor | None) -> Tensor:
        self.fetch()
        return super().push_cotangent(cotangent, below)


def _recall(native: Any, passes: Passes, initial: Sequence[Tensor], weights: LayerWeights) -> None:
    """Load what the layer's own forward pass has kept."""
    first = [*map(_array, initial), None, None][:2]
    kept = [None if one is None else one.numpy() for one in (passes.gates, passes.c)]
    native.recall(_in_time(passes.u), _in_time(passes.h), first, _arrays(weights), *kept)


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().contiguous().numpy()


def _in_time(tensor: Tensor | None) -> Any:
    """(T,B,·) as it lies; the kernel wants the last axis contiguous."""
    if tensor is None:
        return None
    return (tensor if tensor.stride(-1) == 1 else tensor.contiguous()).detach().numpy()


def _arrays(weights: LayerWeights) -> list[Any]:
    return [_array(weights.get(name)) for name in cells.LINEAR]


def _scaled(above: Scaled | None) -> tuple[Any, Any]:
    if above is None:
        return None, None
    return _in_time(above.parts[0]), _array(above.exponents.to(torch.int32))
