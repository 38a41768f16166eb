"""The gradient of the slow Q of one tanh layer, by the core's kernel.

One tanh layer is the network of the paper, but for what stands above it. Of that only γ counts, the
gradient that enters at the last step, which is held. So the core is given an output layer and
targets whose errors are γ: w_out = ε·1 and t = ε z(T) − γ/ε. Its errors move with the weights, but
only by ε² of what they enter: with γ of length 1 and a small ε that is below a float's last bit. An
example's slow Q does not depend on the length of its γ.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gradsieve.change import slow_gradient
from gradsieve.flow import propagate
from gradsieve.network import SRN, Array
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.transport import Transport
from gradsieve.torch.modules.stack import LayerWeights

EPSILON = {torch.float32: 2.0**-12, torch.float64: 2.0**-26}


def slow_slopes(transport: Transport, horizon: int | None, window: float) -> LayerWeights | None:
    """∂(slow Q)/∂(weight) of the layer, the mean over the examples that count.

    None where the call is not one of equally long sequences through one tanh layer, from rest.
    """
    layer = transport.one_tanh_layer
    if layer is None or len(transport.carriers) != 1:
        return None
    last = transport.carriers[0].last  # −1 where an example has no gradient
    together = bool(((last == last.max()) | (last < 0)).all())
    if not together or last.max() < 1 or layer.run.before[0][0].any():
        return None
    carrier, run = transport.carriers[0], layer.run
    unit, some = _unit_gamma(carrier)
    steps = int(carrier.last.max()) + 1
    z = run.after[0][steps - 1, some]
    epsilon = EPSILON[z.dtype]
    net = _network(run.weights, epsilon)
    t = epsilon * z - unit[some] / epsilon
    flow = propagate(net, _array(run.u[:steps, some]), _array(t), None)
    slope = slow_gradient(flow, horizon, window)
    found = {"weight_ih": slope.w_in.T, "weight_hh": slope.w_rec.T}
    found |= {name: slope.b for name in ("bias_ih", "bias_hh") if name in run.weights}
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in found.items()}


def _unit_gamma(carrier: Carrier) -> tuple[Tensor, Tensor]:
    """γ of each example with length 1, and which examples have any."""
    gamma = carrier.gamma[0][0]
    largest = gamma.abs().amax(1, keepdim=True)
    some = (largest > 0).squeeze(1)
    scaled = gamma / torch.where(largest > 0, largest, 1.0)
    return scaled / scaled.norm(dim=1, keepdim=True).clamp(min=math.ulp(1.0)), some


def _network(weights: LayerWeights, epsilon: float) -> SRN:
    w_in, w_rec = _array(weights["weight_ih"].T), _array(weights["weight_hh"].T)
    hidden = len(w_rec)
    b, b_out = np.zeros((2, hidden), w_rec.dtype)
    for name in ("bias_ih", "bias_hh"):
        if name in weights:
            b += _array(weights[name])
    w_out = epsilon * np.eye(hidden, dtype=w_rec.dtype)
    return SRN(w_in, w_rec, b, w_out, b_out, "linear")


def _array(tensor: Tensor) -> Array:
    return np.ascontiguousarray(tensor.numpy())
