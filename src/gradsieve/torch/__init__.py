"""The sieve for any PyTorch model with recurrent modules: one line around the optimizer.

>>> import torch, gradsieve.torch as gst
>>> model = torch.nn.GRU(3, 16)
>>> optimizer = gst.Sieve(model, torch.optim.SGD(model.parameters(), lr=0.1))

See docs/pytorch.md for use and docs/theory-gated-cells.md for the measures.
"""

import warnings
from typing import Any

from gradsieve.errors import needs_extra

with needs_extra("gradsieve.torch", "torch"):
    import torch as _torch  # noqa: F401

from gradsieve.torch.applying.clipping import Clip
from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.fast.modules import GRU, LSTM, RNN, SRN, accelerate
from gradsieve.torch.modules.cells import Cell
from gradsieve.torch.modules.stack import Recurrent
from gradsieve.torch.modules.start import init_
from gradsieve.torch.watching.constant_guess import constant_loss
from gradsieve.torch.watching.run_folder import ToRunFolder
from gradsieve.torch.watching.sinks import ToCSV, ToTensorBoard, ToWandb
from gradsieve.torch.watching.watch import Watch, watch

__all__ = [
    "init_",
    "Sieve",
    "Clip",
    "watch",
    "Watch",
    "constant_loss",
    "ToCSV",
    "ToTensorBoard",
    "ToWandb",
    "ToRunFolder",
    "RNN",
    "GRU",
    "LSTM",
    "accelerate",
    "SRN",
    "Cell",
    "Recurrent",
]

_MOVED = {"CSVSink": "ToCSV", "TensorBoardSink": "ToTensorBoard"}  # since version 0.1


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"gst.{name} is now gst.{_MOVED[name]}", DeprecationWarning, stacklevel=2)
    return globals()[_MOVED[name]]
