"""The kernel's recurrent layers, and layers linearised for judging, for `gradsieve.torch`."""

from gradsieve.kernel._native import (
    Linearised32,
    Linearised64,
    recurrent_backward,
    recurrent_forward,
)

__all__ = ["Linearised32", "Linearised64", "recurrent_backward", "recurrent_forward"]
