"""The modules of a gated network in training, and its sequences as tensors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.data import Sequences
from gradsieve.fitting._gated_run import Beginning

KINDS: dict[str, type[nn.GRU] | type[nn.LSTM]] = {"gru": gst.GRU, "lstm": gst.LSTM}
_random = threading.Lock()  # PyTorch's random numbers belong to the process


class Part:
    """Sequences as tensors, padded behind their ends."""

    def __init__(self, scaled: Sequences) -> None:
        self.count, self.per_step = scaled.count, scaled.per_step
        self.lengths = torch.from_numpy(scaled.lengths)
        longest = int(scaled.lengths.max())
        inside = np.arange(longest) < scaled.lengths[:, None]
        u = np.zeros((scaled.count, longest, scaled.inputs), dtype=np.float32)
        u[inside] = scaled.values
        real = scaled.classes is None
        t = scaled.targets.astype(np.float32) if real else scaled.targets
        if scaled.per_step:
            held = np.zeros((*inside.shape, *t.shape[1:]), dtype=t.dtype)
            held[inside] = t
            t = held
        self.u, self.t = torch.from_numpy(u), torch.from_numpy(t)


def modules(begin: Beginning, train: Sequences) -> tuple[nn.GRU | nn.LSTM, nn.Linear]:
    """The recurrent layer and its read-out, drawn from a seed of their own."""
    with _random, torch.random.fork_rng(devices=[]):
        torch.manual_seed(begin.seed)
        recurrent = KINDS[begin.cell](train.inputs, begin.hidden, batch_first=True)
        head = nn.Linear(begin.hidden, train.outputs)
        if begin.start == "chrono":
            gst.init_(recurrent, max(3, int(np.median(train.lengths))))
    return recurrent, head


@contextmanager
def one_thread() -> Iterator[None]:
    """PyTorch computes with one thread: runs side by side have a core each."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
