"""The reference engine: the compiled kernel's arithmetic in NumPy and float64, for reading.

`flow` has the network of the paper, `cells` the recurrent layers of PyTorch.
"""

from gradsieve.reference.flow import ReferenceFlow, predict

__all__ = ["ReferenceFlow", "predict"]
