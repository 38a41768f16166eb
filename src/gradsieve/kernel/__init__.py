"""The compiled kernel: the arithmetic of one minibatch behind `gradsieve.flow`, and only that.

`NativeFlow` and `predict` do what `gradsieve.reference` does, in the network's own precision, on
vectors. `norm`, `propose`, `move`, `observe` and `scaled` are what a training step does with whole
weight vectors. The best instruction set that the CPU has is chosen at run time; the environment
variable GRADSIEVE_ISA forces one of `available_isas()`.
"""

from gradsieve.errors import InvalidArgument
from gradsieve.kernel._native import (
    available_isas,
    fma_peak,
    isa,
    move,
    norm,
    observe,
    propose,
    scaled,
)
from gradsieve.kernel.native_flow import NativeFlow, predict

try:
    isa()
except ValueError as error:
    raise InvalidArgument(str(error)) from error

__all__ = [
    "NativeFlow",
    "available_isas",
    "fma_peak",
    "isa",
    "move",
    "norm",
    "observe",
    "predict",
    "propose",
    "scaled",
]
