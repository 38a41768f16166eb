"""One minibatch through the network of the paper: docs/theory.md in NumPy and float64, for reading.

It is the oracle of the compiled kernel. Letters are the paper's: z states, D slopes, e errors,
delta deltas; `da`, `dz`, `ddelta` are their changes along an update (the full and the frozen
estimator); `lam` and `mu` are the adjoints of ddelta and da (the gradient of S and Q).
"""

from __future__ import annotations

import numpy as np

from gradsieve.engine import Derivative, Flow, Measure, Norms
from gradsieve.network import SRN, Array, Weights


def forward(net: SRN, u: Array, starts: Array | None) -> tuple[Array, Array]:
    """States z(0)…z(T) and slopes D(1)…D(T), Eq. 1."""
    steps, batch, _ = u.shape
    states = np.zeros((steps + 1, batch, net.hidden))
    slopes = np.empty((steps, batch, net.hidden))
    drive = u @ net.w_in + net.b
    for n in range(1, steps + 1):
        a = drive[n - 1] + states[n - 1] @ net.w_rec
        decay = np.exp(-2 * np.abs(a))
        states[n] = np.tanh(a)
        slopes[n - 1] = 4 * decay / (1 + decay) ** 2  # 1 - tanh², without its cancellation
        if starts is not None:
            states[n][n <= starts] = 0
            slopes[n - 1][n <= starts] = 0
    return states, slopes


def read_out(net: SRN, states: Array) -> Array:
    """Outputs g(z w_out + b_out): probabilities or values."""
    y: Array = states @ net.w_out + net.b_out
    if net.output == "linear":
        return y
    power: Array = np.exp(y - y.max(axis=-1, keepdims=True))
    power /= power.sum(axis=-1, keepdims=True)
    return power


def predict(net: SRN, u: Array, starts: Array | None, per_step: bool) -> Array:
    net = net.astype(np.float64)
    states, _ = forward(net, u.astype(np.float64), starts)
    return read_out(net, states[1:] if per_step else states[-1])


class ReferenceFlow(Flow):
    """See `Flow`."""

    engine = "reference"

    def __init__(
        self, net: SRN, u: Array, t: Array, starts: Array | None, reuse: Flow | None = None
    ) -> None:
        self.net, self.u, self.t, self.starts = net.astype(np.float64), u.astype(float), t, starts
        with np.errstate(all="ignore"):
            self.states, self.slopes = forward(self.net, self.u, starts)
            self._read_out()
            self._backward()

    def _read_out(self) -> None:
        """Loss, outputs and errors e(n); e is zero at a step that has no target."""
        net, steps = self.net, self.states[1:]
        self.outputs = read_out(net, steps if self.per_step else steps[-1])
        if net.output == "softmax":
            target = np.eye(net.outputs)[self.t]
            y = (steps if self.per_step else steps[-1]) @ net.w_out + net.b_out
            top = y.max(axis=-1, keepdims=True)
            log_total = top + np.log(np.exp(y - top).sum(axis=-1, keepdims=True))
            losses = (target * (log_total - y)).sum(axis=-1)
        else:
            target = self.t.astype(np.float64)
            losses = 0.5 * ((self.outputs - target) ** 2).sum(axis=-1)
        e = self.outputs - target
        if net.output == "softmax":  # -(the others), since p - 1 cancels where p is near 1
            others = np.where(target == 1, 0, self.outputs).sum(axis=-1, keepdims=True)
            e = np.where(target == 1, -others, self.outputs)
        if self.per_step:
            active = self._active()
            e, losses = e * active[..., None], losses * active
        self.errors = e
        self.loss = float(losses.sum())

    def _active(self) -> Array:
        """(T,B): whether a step is part of the sequence."""
        n = np.arange(1, self.length + 1)[:, None]
        if self.starts is None:
            return np.ones((self.length, self.u.shape[1]), dtype=bool)
        return n > self.starts

    def _backward(self) -> None:
        """Deltas (Eq. 2), scaled by powers of two as they go, and the gradient."""
        net, D = self.net, self.slopes
        steps = self.length
        delta = np.zeros_like(D)
        exponents = np.zeros(steps, dtype=np.int64)
        for n in range(steps, 0, -1):
            back, exponent = np.zeros_like(D[0]), 0
            if n < steps:
                back, exponent = _in_units(delta[n] @ net.w_rec.T, int(exponents[n]))
            if self.per_step or n == steps:
                e = self.errors[n - 1] if self.per_step else self.errors
                own, units = _in_units(e @ net.w_out.T, 0)
                # In the units of the later deltas, where those have vanished, it would overflow.
                larger = units if not back.any() or (own.any() and units > exponent) else exponent
                back = np.ldexp(back, exponent - larger) + np.ldexp(own, units - larger)
                exponent = larger
            delta[n - 1], exponents[n - 1] = _in_units(back * D[n - 1], exponent)
        self.scaled_deltas, self.exponents = delta, exponents
        true = self.deltas
        z, u = self.states, self.u
        z_out = z[1:] if self.per_step else z[-1:]
        e_out = self.errors if self.per_step else self.errors[None]
        self.gradient = Weights(
            w_in=np.einsum("nbi,nbh->ih", u, true),
            w_rec=np.einsum("nbi,nbh->ih", z[:-1], true),
            b=true.sum(axis=(0, 1)),
            w_out=np.einsum("nbh,nbo->ho", z_out, e_out),
            b_out=e_out.sum(axis=(0, 1)),
        )

    @np.errstate(all="ignore")
    def norms(self, update: Weights | None, horizon: int, estimator: Derivative) -> Norms:
        T, far = self.length, self.length - horizon
        near_delta, far_delta = self.scaled_deltas[T - 1], self.scaled_deltas[far - 1]
        near_norms = np.linalg.norm(near_delta, axis=1)
        far_norms = np.linalg.norm(far_delta, axis=1)
        near_products = far_products = np.zeros_like(near_norms)
        if update is not None:
            near_change, far_change = (self._full if estimator == "full" else self._frozen)(
                update, far
            )
            near_products = (near_delta * near_change).sum(axis=1)
            far_products = (far_delta * far_change).sum(axis=1)
        return Norms(
            near_norm=float(near_norms.sum()),
            near_slope=float(_over(near_products, near_norms).sum()),
            far_norm=float(far_norms.sum()),
            far_slope=float(_over(far_products, far_norms).sum()),
            far_square=float((far_norms**2).sum()),
            far_product=float(far_products.sum()),
            near_exponent=int(self.exponents[T - 1]),
            far_exponent=int(self.exponents[far - 1]),
        )

    def _frozen(self, update: Weights, far: int) -> tuple[Array, Array]:
        """ddelta(T), ddelta(T-h) with D held fixed: Lemma 1, as one recursion."""
        delta, D = self.scaled_deltas, self.slopes
        near = ddelta = np.zeros_like(delta[0])
        for n in range(self.length - 1, far - 1, -1):
            ddelta = ddelta @ self.net.w_rec.T + delta[n] @ update.w_rec.T
            ddelta = np.ldexp(ddelta * D[n - 1], self.exponents[n] - self.exponents[n - 1])
        return near, ddelta

    def _full(self, update: Weights, far: int) -> tuple[Array, Array]:
        """ddelta(T), ddelta(T-h) with nothing held fixed."""
        net, T = self.net, self.length
        z, D, delta = self.states, self.slopes, self.scaled_deltas
        da = self.u @ update.w_in + z[:-1] @ update.w_rec + update.b
        dz = np.zeros_like(z[0])
        for n in range(1, T + 1):
            da[n - 1] += dz @ net.w_rec
            dz = D[n - 1] * da[n - 1]
        e = self.errors
        dy = dz @ net.w_out + z[T] @ update.w_out + update.b_out
        de = self._output_jacobian(dy)
        # (e w_outᵀ)∘dD(n) = -2 z(n)∘da(n)∘delta(n), and likewise at every earlier step.
        ddelta = np.ldexp(
            (de @ net.w_out.T + e @ update.w_out.T) * D[T - 1], -self.exponents[T - 1]
        )
        ddelta = near = ddelta - 2 * z[T] * da[T - 1] * delta[T - 1]
        for n in range(T - 1, far - 1, -1):
            ddelta = (ddelta @ net.w_rec.T + delta[n] @ update.w_rec.T) * D[n - 1]
            ddelta = np.ldexp(ddelta, self.exponents[n] - self.exponents[n - 1])
            ddelta = ddelta - 2 * z[n] * da[n - 1] * delta[n - 1]
        return near, ddelta

    def _output_jacobian(self, dy: Array) -> Array:
        """de from dy at the last step: dy, or (diag p - pᵀp) dy for softmax. It is symmetric."""
        if self.net.output == "linear":
            return dy
        p = self.outputs
        # Taken relative to the likeliest class, nothing cancels where it has nearly all of p.
        dy = dy - np.take_along_axis(dy, p.argmax(axis=-1, keepdims=True), axis=-1)
        de: Array = p * (dy - (p * dy).sum(axis=-1, keepdims=True))
        return de

    @np.errstate(all="ignore")
    def norm_gradient(self, horizon: int, of: Measure, estimator: Derivative) -> Weights:
        far = self.length - horizon
        seeds = np.zeros_like(self.scaled_deltas)
        seeds[far - 1], seeds[-1] = self._seeds(far, of)
        return self._differentiate(seeds, far, estimator)

    def _differentiate(self, lam: Array, far: int, estimator: Derivative) -> Weights:
        """The adjoint of the recursions above.

        lam[n-1] is the adjoint of ddelta(n), in complementary units: at first the derivative of
        what is measured by delta(n) alone.
        """
        net, T = self.net, self.length
        z, D, delta, exponents = self.states, self.slopes, self.scaled_deltas, self.exponents
        w_rec = np.zeros_like(net.w_rec)
        for n in range(far, T):
            slope_lam = np.ldexp(lam[n - 1] * D[n - 1], exponents[n] - exponents[n - 1])
            w_rec += slope_lam.T @ delta[n]
            lam[n] += slope_lam @ net.w_rec
        if estimator == "frozen":
            gradient = net.like(np.zeros_like(net.flat))
            gradient.w_rec[:] = w_rec
            return gradient
        e = self.errors
        top = np.ldexp(lam[T - 1] * D[T - 1], -exponents[T - 1])
        dy = self._output_jacobian(top @ net.w_out)
        mu = -2 * z[1:] * delta * lam
        mu[T - 1] += (dy @ net.w_out.T) * D[T - 1]
        for n in range(T - 1, 0, -1):
            mu[n - 1] += (mu[n] @ net.w_rec.T) * D[n - 1]
        return Weights(
            w_in=np.einsum("nbi,nbh->ih", self.u, mu),
            w_rec=w_rec + np.einsum("nbi,nbh->ih", z[:-1], mu),
            b=mu.sum(axis=(0, 1)),
            w_out=top.T @ e + z[T].T @ dy,
            b_out=dy.sum(axis=0),
        )

    def _seeds(self, far: int, of: Measure) -> tuple[Array, Array]:
        """The derivative of S or Q by delta(T-h) and by delta(T)."""
        near_delta, far_delta = self.scaled_deltas[-1], self.scaled_deltas[far - 1]
        if of == "S":
            return far_delta, np.zeros_like(near_delta)
        near_norms = np.linalg.norm(near_delta, axis=1, keepdims=True)
        far_norms = np.linalg.norm(far_delta, axis=1, keepdims=True)
        scale = 1 / np.log(10)
        return (
            -scale * _over(far_delta, far_norms * far_norms.sum()),
            scale * _over(near_delta, near_norms * near_norms.sum()),
        )

    @np.errstate(all="ignore")
    def slow_factor(self, horizon: int, steps: int) -> float:
        near_norms = np.linalg.norm(self.scaled_deltas[-1], axis=1)
        _, slow, exponent = self._slow(horizon, steps)
        slow_norms = np.linalg.norm(slow, axis=1)
        counts = (near_norms > 0) & (slow_norms > 0)
        if not counts.any():
            return np.inf if near_norms.any() else np.nan
        units = (self.exponents[-1] - exponent) * np.log10(2)
        return float(np.log10(near_norms[counts] / slow_norms[counts]).mean() + units)

    def _slow(self, horizon: int, steps: int) -> tuple[Array, Array, int]:
        """The window's weights; the slow gradient of each example in units of 2**exponent."""
        first = self.length - horizon - 1
        window = slice(first, first + steps)
        weights = np.sin(np.pi * (np.arange(steps) + 0.5) / steps) ** 2
        weights /= weights.sum()
        exponent = int(self.exponents[window].max())
        weights = np.ldexp(weights, self.exponents[window] - exponent)
        return weights, np.einsum("n,nbh->bh", weights, self.scaled_deltas[window]), exponent

    @np.errstate(all="ignore")
    def slow_gradient(self, horizon: int, steps: int) -> Weights:
        far = self.length - horizon
        near = self.scaled_deltas[-1]
        weights, slow, _ = self._slow(horizon, steps)
        near_squares = (near**2).sum(axis=1, keepdims=True)
        slow_squares = (slow**2).sum(axis=1, keepdims=True)
        counts = (near_squares > 0) & (slow_squares > 0)
        scale = counts / (np.log(10) * max(1, counts.sum()))
        seeds = np.zeros_like(self.scaled_deltas)
        along_slow = -scale * _over(slow, slow_squares)
        seeds[far - 1 : far - 1 + steps] = weights[:, None, None] * along_slow
        seeds[-1] += scale * _over(near, near_squares)
        return self._differentiate(seeds, far, "full")

    @np.errstate(all="ignore")
    def example_products(self, direction: Weights) -> Array:
        true, z = self.deltas, self.states
        carried = self.u @ direction.w_in + z[:-1] @ direction.w_rec + direction.b
        z_out = z[1:] if self.per_step else z[-1:]
        e_out = self.errors if self.per_step else self.errors[None]
        products: Array = (true * carried).sum(axis=(0, 2))
        products += (e_out * (z_out @ direction.w_out + direction.b_out)).sum(axis=(0, 2))
        return products


def _in_units(values: Array, exponent: int) -> tuple[Array, int]:
    """These values times 2**exponent, the largest brought into [½, 1), and their new exponent."""
    largest = np.abs(values).max()
    shift = int(np.frexp(largest)[1]) if np.isfinite(largest) and largest > 0 else 0
    return np.ldexp(values, -shift), exponent + shift


def _over(values: Array, norms: Array) -> Array:
    """values / norms, and zero where a delta is exactly zero."""
    return np.divide(
        values, norms, out=np.zeros(np.broadcast(values, norms).shape), where=norms > 0
    )
