"""The native engine: a `Flow` whose arrays live in a workspace of the compiled kernel.

Nothing is calculated here. Arrays are views of the kernel's memory, made when first asked for, so
that a training loop pays for the gradient alone.
"""

from __future__ import annotations

import numpy as np

from gradsieve.engine import Derivative, Flow, Measure, Norms
from gradsieve.errors import InvalidArgument
from gradsieve.kernel import _native
from gradsieve.network import SRN, Array, Weights

_Workspace = _native.Workspace32 | _native.Workspace64
_Sizes = tuple[int, int, int, int, int, bool, bool]


class NativeFlow(Flow):
    """See `Flow`. Its arrays are views that a later flow with `reuse=` this one overwrites."""

    engine = "native"

    def __init__(
        self,
        net: SRN,
        u: Array,
        t: Array,
        starts: Array | None,
        reuse: Flow | None = None,
        isa: str = "",
    ) -> None:
        self.u, self.t, self.starts = u, t, starts
        self._like = net
        softmax = net.output == "softmax"
        per_step = t.ndim == (2 if softmax else 3)
        steps, batch, _ = u.shape
        sizes = (steps, batch, net.inputs, net.hidden, net.outputs, softmax, per_step)
        self._gradient: Weights | None = None
        self._net: SRN | None = None
        workspace: _Workspace | None = None
        if isinstance(reuse, NativeFlow):
            workspace = reuse._reusable(sizes, net, isa)
            if workspace is not None:  # its views are views of the same memory
                self._gradient, self._net = reuse._gradient, reuse._net
        if workspace is None:
            kind = _native.Workspace64 if net.dtype == np.float64 else _native.Workspace32
            workspace = kind(*sizes, isa)
        self._workspace: _Workspace = workspace
        self.loss = workspace.backpropagate(_flat(net, net), u, t, starts)
        self._generation = workspace.generation

    def _reusable(self, sizes: _Sizes, net: SRN, isa: str) -> _Workspace | None:
        """The workspace, if it has these sizes and this precision."""
        space = self._workspace
        fits = space.sizes == sizes and self._like.dtype == net.dtype
        return space if fits and isa in ("", space.isa) else None

    def _live(self) -> _Workspace:
        if self._workspace.generation != self._generation:
            raise InvalidArgument(
                "this flow's memory was given to a later one by reuse=; it holds no values any more"
            )
        return self._workspace

    def _array(self, name: str) -> Array:
        return self._live().array(name)

    @property
    def net(self) -> SRN:  # type: ignore[override]
        workspace = self._live()
        if self._net is None:
            self._net = self._like.replaced(workspace.array("theta"))
        return self._net

    @property
    def per_step(self) -> bool:
        return self.t.ndim == (2 if self._like.output == "softmax" else 3)

    @property
    def outputs(self) -> Array:  # type: ignore[override]
        return self._array("outputs")

    @property
    def errors(self) -> Array:
        return self._array("errors")

    @property
    def states(self) -> Array:  # type: ignore[override]
        return self._array("states")

    @property
    def slopes(self) -> Array:  # type: ignore[override]
        return self._array("slopes")

    @property
    def scaled_deltas(self) -> Array:  # type: ignore[override]
        return self._array("scaled_deltas")

    @property
    def exponents(self) -> Array:  # type: ignore[override]
        return self._array("exponents")

    @property
    def gradient(self) -> Weights:  # type: ignore[override]
        workspace = self._live()
        if self._gradient is None:
            self._gradient = self._like.like(workspace.array("gradient"))
        return self._gradient

    @property
    def memory(self) -> int:
        """Bytes that the kernel holds for this flow."""
        return int(self._workspace.bytes)

    def norms(self, update: Weights | None, horizon: int, estimator: Derivative) -> Norms:
        flat = None if update is None else _flat(update, self._like)
        return Norms(*self._live().norms(flat, horizon, estimator == "full"))

    def norm_gradient(self, horizon: int, of: Measure, estimator: Derivative) -> Weights:
        flat = self._live().norm_gradient(horizon, of == "Q", estimator == "full")
        return self._like.like(flat)

    def slow_factor(self, horizon: int, steps: int) -> float:
        return self._live().slow_factor(horizon, steps)

    def slow_gradient(self, horizon: int, steps: int) -> Weights:
        return self._like.like(self._live().slow_gradient(horizon, steps))

    def example_products(self, direction: Weights) -> Array:
        return self._live().example_products(_flat(direction, self._like))


def predict(net: SRN, u: Array, starts: Array | None, per_step: bool, isa: str = "") -> Array:
    """Outputs (B,O) at the last step, or (T,B,O) at every step; see `gradsieve.flow.predict`."""
    return _native.predict(
        _flat(net, net), u, starts, net.hidden, net.outputs, net.output == "softmax", per_step, isa
    )


def _flat(weights: Weights, like: Weights) -> Array:
    """The flat vector, in the precision of `like` and contiguous; rarely a copy."""
    return np.ascontiguousarray(weights.flat, dtype=like.dtype)
