"""What a person would use instead of `fit`: PyTorch's cells, 1-NN DTW, MiniRocket, a linear model.

A method takes training and test series, a seed and CPU seconds, and returns score, bytes and
multiplications a step. PyTorch networks are trained the usual way: Adam, minibatches of 16,
gradient norm clipped at 1. Of two starts (PyTorch's own; orthogonal for RNN, chrono for GRU and
LSTM) and three rates each candidate gets an equal share of 40 % of the time; the best by validation
loss goes on, and its best weights by validation loss count.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

import gradsieve.torch as gst
from gradsieve.data import Scaling, Sequences, split
from gradsieve.export import Portable, footprint, from_torch, quantised
from gradsieve.model import Answers, Model, r_squared

RATES, BATCH, HIDDEN, SEARCHING = (1e-3, 3e-3, 1e-2), 16, 32, 0.4
Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Clock = time.process_time


def needs(model: Answers) -> dict[str, Any]:
    """Parameters, bytes and multiplications a step of a recurrent network as a C header."""
    assert isinstance(model, Model | Portable)
    plain, int8 = footprint(model), footprint(model, "int8")
    return {
        "parameters": model.parameters,
        "bytes": plain.flash,
        "bytes_int8": int8.flash,
        "multiplications": plain.multiplications_per_step,
    }


class TorchNetwork(nn.Module):
    """A recurrent layer and a linear read-out of its last state."""

    def __init__(self, layer: Callable[..., nn.RNNBase], inputs: int, outputs: int) -> None:
        super().__init__()
        self.recurrent = layer(inputs, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, outputs)

    def forward(self, u: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        states = self.recurrent(u[:, : int(lengths.max())])[0]
        return self.out(states[torch.arange(len(u)), lengths - 1])


class Candidate:
    """One start and rate, trained as long as it is given time."""

    def __init__(self, net: TorchNetwork, rate: float) -> None:
        self.net, self.loss, self.kept = net, float("inf"), dict(net.state_dict())
        self.optimizer = torch.optim.Adam(net.parameters(), lr=rate)

    def train(self, train: Tensors, validation: Tensors, seconds: float) -> None:
        until = Clock() + seconds
        while Clock() < until:
            for chosen in torch.randperm(len(train[0])).split(BATCH):
                self.optimizer.zero_grad()
                loss_of(self.net, *(part[chosen] for part in train)).backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
                self.optimizer.step()
                if Clock() >= until:
                    break
            with torch.no_grad():
                value = float(loss_of(self.net, *validation))
            if value < self.loss:
                kept = {name: tensor.clone() for name, tensor in self.net.state_dict().items()}
                self.loss, self.kept = value, kept


def loss_of(net: TorchNetwork, u: torch.Tensor, lengths: torch.Tensor, t: torch.Tensor) -> Any:
    y = net(u, lengths)
    return nn.functional.cross_entropy(y, t) if t.dim() == 1 else nn.functional.mse_loss(y, t)


def tensors(data: Sequences) -> Tensors:
    """Padded behind their ends, with lengths."""
    u = np.zeros((data.count, int(data.lengths.max()), data.inputs), dtype=np.float32)
    for number, length in enumerate(data.lengths):
        u[number, :length] = data.values[data.steps_of([number])]
    t = data.targets if data.classes is not None else data.targets.astype(np.float32)
    return torch.from_numpy(u), torch.from_numpy(data.lengths), torch.from_numpy(t)


def torch_network(layer: Callable[..., nn.RNNBase]) -> Callable[..., dict[str, Any]]:
    def run(train: Sequences, test: Sequences, seed: int, seconds: float) -> dict[str, Any]:
        torch.set_num_threads(1)
        until = Clock() + seconds
        parts = split(train, 0.2, 0.0, seed)
        scaling = Scaling.of(parts.train)
        learned, held = (tensors(scaling.scaled(part)) for part in (parts.train, parts.validation))
        candidates = []
        for own in (False, True):
            for rate in RATES:
                torch.manual_seed(seed)
                net = TorchNetwork(layer, train.inputs, train.outputs)
                if own:
                    gst.init_(net, max(3, int(np.median(train.lengths))))
                candidates.append(Candidate(net, rate))
                candidates[-1].train(learned, held, SEARCHING * seconds / (2 * len(RATES)))
        best = min(candidates, key=lambda one: one.loss)
        best.train(learned, held, until - Clock())
        best.net.load_state_dict(best.kept)
        model = from_torch(
            best.net.recurrent, best.net.out, output=train.output, classes=train.classes
        )
        model = replace(model, scaling=scaling)
        return needs(model) | {
            "score": model.score(test),
            "score_int8": quantised(model).score(test),
        }

    return run


def cases(data: Sequences, length: int | None = None) -> Any:
    """(inputs, steps) a series; with a length, zeros behind the end of shorter ones."""
    found = [data.values[data.steps_of([number])].T for number in range(data.count)]
    if length is not None:
        found = [np.pad(one[:, :length], ((0, 0), (0, max(0, length - one.shape[1]))))
                 for one in found]  # fmt: skip
    return np.stack(found) if length is not None or data.equal_lengths else found


def scored(train: Sequences, test: Sequences, predicted: Any) -> float:
    if train.classes is None:
        return r_squared(np.asarray(predicted, float).reshape(test.count, -1), test.targets)
    named = np.array(test.classes)[test.targets]
    return float((np.array(train.classes)[predicted] == named).mean())


def targets(train: Sequences) -> Any:
    return train.targets if train.classes is not None else train.targets[:, 0]


def nearest_neighbour(
    train: Sequences, test: Sequences, seed: int, seconds: float
) -> dict[str, Any]:
    """1-NN DTW on the whole training part; its time is that of classifying the test part."""
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier
    from aeon.regression.distance_based import KNeighborsTimeSeriesRegressor

    kind = (
        KNeighborsTimeSeriesRegressor if train.classes is None else KNeighborsTimeSeriesClassifier
    )
    found = kind(distance="dtw", n_neighbors=1)
    found.fit(cases(train), targets(train))
    found.predict(cases(test)[:1])  # compiles
    began = Clock()
    predicted = found.predict(cases(test))
    return {
        "cpu_seconds": round(Clock() - began, 2),
        "score": scored(train, test, predicted),
        "parameters": None,
        "bytes": 4 * int(train.values.size),
        "multiplications": int(train.values.size),  # a square for every value that it keeps
    }


def mini_rocket(train: Sequences, test: Sequences, seed: int, seconds: float) -> dict[str, Any]:
    """aeon's MiniRocket of 10 000 kernels with its ridge read-out; zeros behind shorter series."""
    from aeon.classification.convolution_based import MiniRocketClassifier
    from aeon.regression.convolution_based import MiniRocketRegressor

    kind = MiniRocketRegressor if train.classes is None else MiniRocketClassifier
    length = int(train.lengths.max())
    kind(random_state=seed).fit(cases(train, length)[::2], targets(train)[::2])  # compiles
    began = Clock()
    found = kind(random_state=seed, n_jobs=1)
    found.fit(cases(train, length), targets(train))
    spent = Clock() - began
    predicted = found.predict(cases(test, length))
    features, outputs = 9996, train.outputs if train.outputs > 2 else 1
    return {
        "cpu_seconds": round(spent, 2),
        "score": scored(train, test, predicted),
        "parameters": features * (outputs + 2) + outputs,  # read-out, biases, scaling
        "bytes": 4 * (features * (outputs + 2) + outputs),
        "multiplications": features * outputs // length,  # of the read-out; kernels only add
    }


def ridge(train: Sequences, test: Sequences, seed: int, seconds: float) -> dict[str, Any]:
    """A linear read-out of all the series' values, its strength by leave-one-out."""
    from sklearn.linear_model import RidgeClassifierCV, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kind = RidgeCV if train.classes is None else RidgeClassifierCV
    length = int(train.lengths.max())
    began = Clock()
    found = make_pipeline(StandardScaler(), kind(alphas=np.logspace(-3, 4, 15)))
    found.fit(cases(train, length).reshape(train.count, -1), targets(train))
    spent = Clock() - began
    predicted = found.predict(cases(test, length).reshape(test.count, -1))
    outputs = train.outputs if train.outputs > 2 else 1
    parameters = (length * train.inputs + 1) * outputs  # the scaling goes into the weights
    return {
        "cpu_seconds": round(spent, 2),
        "score": scored(train, test, predicted),
        "parameters": parameters,
        "bytes": 4 * parameters,
        "multiplications": train.inputs * outputs,
    }


OTHERS: dict[str, Callable[..., dict[str, Any]]] = {
    "nn.RNN": torch_network(nn.RNN),
    "nn.GRU": torch_network(nn.GRU),
    "nn.LSTM": torch_network(nn.LSTM),
    "1-NN DTW": nearest_neighbour,
    "MiniRocket": mini_rocket,
    "ridge": ridge,
}
