"""The kernel's recurrent layers and recursions in time, for `gradsieve.torch`."""

from gradsieve.kernel._native import (
    lstm_bend,
    lstm_units,
    products,
    pull,
    push,
    recurrent_backward,
    recurrent_forward,
    tanh_change32,
    tanh_change64,
    tanh_deltas32,
    tanh_deltas64,
)

__all__ = [
    "lstm_bend",
    "lstm_units",
    "products",
    "pull",
    "push",
    "recurrent_backward",
    "recurrent_forward",
    "tanh_change32",
    "tanh_change64",
    "tanh_deltas32",
    "tanh_deltas64",
]
