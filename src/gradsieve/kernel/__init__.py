"""The compiled kernel: the arithmetic of one minibatch behind `gradsieve.flow`, and only that.

`NativeFlow` and `predict` do what `gradsieve.reference` does, in the network's own precision, on
vectors. `norm`, `propose`, `move`, `observe` and `scaled` are what a training step does with whole
weight vectors. The best instruction set that the CPU has is chosen at run time; the environment
variable GRADSIEVE_ISA forces one of `available_isas()`.

Large minibatches are shared among threads, with the same bits for any number of them: as many as
this process may use CPUs, or GRADSIEVE_THREADS, or OMP_NUM_THREADS; `limit_threads` changes that.
"""

import os

from gradsieve.errors import InvalidArgument
from gradsieve.kernel._native import (
    available_isas,
    fma_peak,
    isa,
    limit_threads,
    move,
    norm,
    observe,
    propose,
    scaled,
    thread_limit,
)
from gradsieve.kernel.native_flow import NativeFlow, predict

try:
    isa()
except ValueError as error:
    raise InvalidArgument(str(error)) from error

_wanted = os.environ.get("GRADSIEVE_THREADS")
if _wanted is not None and not (_wanted.isdecimal() and int(_wanted) >= 1):
    raise InvalidArgument(
        f"GRADSIEVE_THREADS is {_wanted!r}; it must be a whole number of at least 1"
    )
if _wanted is None:  # Ray gives a worker of one CPU OMP_NUM_THREADS=1
    _wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
if _wanted.isdecimal() and int(_wanted) >= 1:
    limit_threads(min(int(_wanted), 1000))

__all__ = [
    "NativeFlow",
    "available_isas",
    "fma_peak",
    "isa",
    "limit_threads",
    "move",
    "norm",
    "observe",
    "predict",
    "propose",
    "scaled",
    "thread_limit",
]
