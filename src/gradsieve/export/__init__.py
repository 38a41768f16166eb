"""From a trained network to one that runs where Python does not.

gradsieve.export.to_onnx(model)                  # bytes of an ONNX file
gradsieve.export.to_c(model, weights="int8")     # text of one C99 header
gradsieve.export.footprint(model, "int8")        # flash, RAM, multiplications
"""

from gradsieve.export._c import to_c
from gradsieve.export._footprint import Footprint, WeightFormat, footprint
from gradsieve.export._int8 import quantised
from gradsieve.export._onnx import check_onnx, to_onnx

__all__ = [
    "to_c",
    "to_onnx",
    "check_onnx",
    "quantised",
    "footprint",
    "Footprint",
    "WeightFormat",
]
