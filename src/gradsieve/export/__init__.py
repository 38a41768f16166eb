"""From a trained network to one that runs where Python does not.

gradsieve.export.to_onnx(model)                  # bytes of an ONNX file
gradsieve.export.to_c(model, weights="int8")     # text of one C99 header
gradsieve.export.footprint(model, "int8")        # flash, RAM, multiplications
gradsieve.export.emulated(model, data)           # instructions and code on a Cortex-M, by QEMU
gradsieve.export.from_torch(module, head)        # the same for an nn.RNN, nn.GRU or nn.LSTM
gradsieve.export.load_model("network.safetensors")   # what `gradsieve fit` saved
"""

from gradsieve.export._c import to_c
from gradsieve.export._check_onnx import check_onnx
from gradsieve.export._emulated import Board, Emulated, emulated
from gradsieve.export._file import load_model, read_network
from gradsieve.export._footprint import Footprint, WeightFormat, footprint
from gradsieve.export._from_torch import Description, from_torch, read_torch
from gradsieve.export._int8 import quantised
from gradsieve.export._onnx import to_onnx
from gradsieve.export._portable import Cell, Layer, Portable, portable

__all__ = [
    "to_c",
    "to_onnx",
    "check_onnx",
    "quantised",
    "footprint",
    "emulated",
    "from_torch",
    "load_model",
    "read_network",
    "read_torch",
    "portable",
    "Board",
    "Cell",
    "Emulated",
    "Description",
    "Footprint",
    "Layer",
    "Portable",
    "WeightFormat",
]
