"""`gst.init_`: recurrent modules that begin with a reach.

A tanh or relu layer gets an orthogonal or identity recurrent matrix (Saxe et al. 2014; Le, Jaitly
and Hinton 2015). Gated layers get biases by the wanted reach, chrono initialisation (Tallec and
Ollivier 2018, "Can recurrent neural networks warp time?"): a unit whose forget gate is σ(b)
forgets within about 1 + e^b steps, so b = ln τ with τ drawn uniformly from 1 … reach − 1 spreads
the units' memories over the whole reach.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from gradsieve.errors import InvalidArgument
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.stack import LayerWeights, find_stacks

Matrix = Literal["orthogonal", "identity"]


@torch.no_grad()
def init_(model: nn.Module, reach: int, recurrent: Matrix = "orthogonal") -> nn.Module:
    """Give every nn.RNN, nn.GRU and nn.LSTM of a model a start that reaches `reach` steps back.

    >>> import torch
    >>> model = init_(torch.nn.LSTM(3, 8), reach=200)
    >>> forget = (model.bias_ih_l0 + model.bias_hh_l0)[8:16]
    >>> bool((forget > 0).all() and (forget.exp() < 200).all())
    True

    Args:
        model: where to look for recurrent modules; it is changed in place.
        reach: over how many steps it is to remember, such as the sequences' length; at least 3.
        recurrent: the recurrent matrices that tanh and relu layers get. Each gate's block of a
            gated layer becomes orthogonal.

    Returns:
        The model. Input weights stay as PyTorch draws them; biases of tanh and relu layers are 0.
        Random numbers are PyTorch's (`torch.manual_seed`).
    """
    if isinstance(reach, bool) or not isinstance(reach, int) or reach < 3:
        raise InvalidArgument(f"reach is {reach!r}; it must be a whole number of at least 3")
    if recurrent not in ("orthogonal", "identity"):
        raise InvalidArgument(f"recurrent is {recurrent!r}; it must be 'orthogonal' or 'identity'")
    for stack in find_stacks(model):
        if stack.own:
            raise InvalidArgument(
                f"model has a {type(stack.module).__name__} at {stack.label!r}, whose gates "
                "gst.init_ does not know; initialise it yourself"
            )
        for weights in stack.weights().values():
            if stack.cell in (cells.TANH, cells.RELU):
                _start_simple(weights, recurrent)
            else:
                _start_gated(weights, len(stack.cell.gates), reach)
    return model


def _start_simple(weights: LayerWeights, recurrent: Matrix) -> None:
    fill = nn.init.orthogonal_ if recurrent == "orthogonal" else nn.init.eye_
    fill(weights["weight_hh"])
    for name in ("bias_ih", "bias_hh"):
        if name in weights:
            nn.init.zeros_(weights[name])


def _start_gated(weights: LayerWeights, gates: int, reach: int) -> None:
    """The bias that opens a unit's memory stands in bias_hh, the rest is zero.

    LSTM: forget b, input −b. GRU: h(n) = (1−z) new + z h(n−1), so its update gate z is the one
    that keeps: b.
    """
    for block in weights["weight_hh"].chunk(gates):
        nn.init.orthogonal_(block)
    if "bias_hh" not in weights:
        raise InvalidArgument(
            "model has a gated layer with bias=False; gst.init_ needs biases to open its gates"
        )
    nn.init.zeros_(weights["bias_ih"])
    bias = nn.init.zeros_(weights["bias_hh"]).view(gates, -1)
    memory = _drawn(bias[0], reach)
    if gates == 4:  # input, forget, cell, output
        bias[0], bias[1] = -memory, memory
    else:  # reset, update, new
        bias[1] = memory


def _drawn(like: Tensor, reach: int) -> Tensor:
    """ln τ, τ uniform in 1 … reach − 1, one for each unit."""
    return torch.empty_like(like).uniform_(1, reach - 1).log()
