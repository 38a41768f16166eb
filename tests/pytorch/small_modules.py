"""Small recurrent modules of each kind, for tests that compare them with an oracle."""

from __future__ import annotations

import torch
from torch import Tensor, nn

INPUTS, H = 2, 4
KINDS = {
    "tanh": (nn.RNN, {}),
    "relu": (nn.RNN, {"nonlinearity": "relu"}),
    "gru": (nn.GRU, {}),
    "lstm": (nn.LSTM, {}),
    "no bias": (nn.LSTM, {"bias": False}),
    "projected lstm": (nn.LSTM, {"proj_size": 3}),
    "three tanh layers": (nn.RNN, {"num_layers": 3}),
    "two gru layers": (nn.GRU, {"num_layers": 2}),
    "two lstm layers": (nn.LSTM, {"num_layers": 2}),
    "bidirectional gru": (nn.GRU, {"bidirectional": True}),
    "bidirectional lstm layers": (nn.LSTM, {"bidirectional": True, "num_layers": 2}),
    "three bidirectional layers": (nn.RNN, {"bidirectional": True, "num_layers": 3}),
    "batch first": (nn.GRU, {"batch_first": True}),
}


def make(kind: str) -> nn.RNNBase:
    module_class, settings = KINDS[kind]
    module = module_class(INPUTS, H, **settings)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(1.5)
    return module


def forgetful(kind: str, dtype: torch.dtype) -> nn.RNNBase:
    """The same small weights in each precision, with two gates nearly shut: δ falls quickly."""
    torch.manual_seed(1)
    module_class, settings = KINDS[kind]
    module = module_class(INPUTS, H, **settings)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.mul_(0.4 if "weight" in name else 1.0)
            if "bias_hh" in name and not isinstance(module, nn.RNN):
                parameter[: 2 * H].sub_(2.0)
    return module.to(dtype)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.named_parameters()}
