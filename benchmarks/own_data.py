"""Real series, default flags: gradsieve's network against nn.RNN, GRU, LSTM and 1-NN DTW.

    OMP_NUM_THREADS=1 python benchmarks/own_data.py results/own-data --seeds 3

The data sets ship inside the aeon package, with their official training and test parts. A seed
decides the validation part, the initial weights and the order. What is done is kept in
results.jsonl and not done again; summary.md is written anew each time.

The torch networks have as many hidden units as gradsieve chose, and are trained the usual way:
Adam, minibatches of 16, gradient norm clipped at 1, best of three learning rates by validation
loss, at most 200 epochs, stopped after 40 without improvement. Times are of this process's CPU;
with OMP_NUM_THREADS=1 that is one thread, and what else the machine does counts little.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gradsieve.data import Scaling, Sequences, read, split
from gradsieve.export import footprint, quantised
from gradsieve.fitting import Recipe, fit

CHOSEN_WITH = ("ItalyPowerDemand", "JapaneseVowels", "BasicMotions", "GunPoint")
UNSEEN = ("ArrowHead", "PickupGestureWiimoteZ")
RATES, EPOCHS, PATIENCE, BATCH = (1e-3, 3e-3, 1e-2), 200, 40, 16
HIDDEN = 32


def load(name: str) -> tuple[Sequences, Sequences]:
    import aeon.datasets

    folder = Path(aeon.datasets.__file__).parent / "data" / name
    return read(folder / f"{name}_TRAIN.ts"), read(folder / f"{name}_TEST.ts")


def gradsieve_network(sieve: str) -> Callable[..., dict[str, Any]]:
    def run(train: Sequences, test: Sequences, seed: int) -> dict[str, Any]:
        recipe = Recipe(seed=1000 * seed, sieve=sieve)  # type: ignore[arg-type]
        fitted = fit(train, recipe, test_data=test, jobs=1)
        return {
            "accuracy": fitted.score.value,
            "accuracy_int8": quantised(fitted.model).score(fitted.task.tested),
            "parameters": int(fitted.model.net.flat.size),
            "bytes": footprint(fitted.model).flash,
            "bytes_int8": footprint(fitted.model, "int8").flash,
            "reach": fitted.diagnosis.reach,
            "Q": fitted.diagnosis.Q,
            "chosen": dataclasses.asdict(fitted.chosen),
        }

    return run


class TorchNetwork(nn.Module):
    """A recurrent layer and a linear read-out of its last state."""

    def __init__(self, layer: Callable[..., nn.RNNBase], inputs: int, outputs: int) -> None:
        super().__init__()
        self.recurrent = layer(inputs, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, outputs)

    def forward(self, u: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(
            u, lengths, batch_first=True, enforce_sorted=False
        )
        last = self.recurrent(packed)[1]
        return self.out((last[0] if isinstance(last, tuple) else last)[0])


Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def tensors(data: Sequences) -> Tensors:
    """Padded at the end, with lengths: what packing takes."""
    u = np.zeros((data.count, int(data.lengths.max()), data.inputs), dtype=np.float32)
    for number, length in enumerate(data.lengths):
        u[number, :length] = data.values[data.steps_of([number])]
    return torch.from_numpy(u), torch.from_numpy(data.lengths), torch.from_numpy(data.targets)


def torch_network(layer: Callable[..., nn.RNNBase]) -> Callable[..., dict[str, Any]]:
    def run(train: Sequences, test: Sequences, seed: int) -> dict[str, Any]:
        parts = split(train, 0.2, 0.0, 1000 * seed)
        scaling = Scaling.of(parts.train)
        sets = [tensors(scaling.scaled(part)) for part in (parts.train, parts.validation, test)]
        best_loss, best = float("inf"), None
        for rate in RATES:
            torch.manual_seed(seed)
            net = TorchNetwork(layer, train.inputs, train.outputs)
            loss = train_torch(net, sets[0], sets[1], rate)
            if loss < best_loss:
                best_loss, best = loss, net
        assert best is not None
        with torch.no_grad():
            right = best(*sets[2][:2]).argmax(dim=1) == sets[2][2]
        parameters = sum(parameter.numel() for parameter in best.parameters())
        return {
            "accuracy": float(right.float().mean()),
            "parameters": parameters,
            "bytes": 4 * parameters,
        }

    return run


def train_torch(net: TorchNetwork, train: Tensors, validation: Tensors, rate: float) -> float:
    """Adam with early stopping; leaves the best weights in the network, returns their loss."""
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    best, best_epoch, kept = float("inf"), 0, {}
    for epoch in range(EPOCHS):
        order = torch.randperm(len(train[0]))
        for chosen in order.split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(
                net(train[0][chosen], train[1][chosen]), train[2][chosen]
            )
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        with torch.no_grad():
            value = float(nn.functional.cross_entropy(net(*validation[:2]), validation[2]))
        if value < best:
            best, best_epoch = value, epoch
            kept = {name: tensor.clone() for name, tensor in net.state_dict().items()}
        elif epoch - best_epoch >= PATIENCE:
            break
    if kept:
        net.load_state_dict(kept)
    return best


def nearest_neighbour(train: Sequences, test: Sequences, seed: int) -> dict[str, Any]:
    """1-NN DTW on the whole training part; nothing in it is random."""
    from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

    def cases(data: Sequences) -> Any:
        found = [data.values[data.steps_of([number])].T for number in range(data.count)]
        return np.stack(found) if data.equal_lengths and train.equal_lengths else found

    classifier = KNeighborsTimeSeriesClassifier(distance="dtw", n_neighbors=1)
    classifier.fit(cases(train), train.targets)
    classifier.predict(cases(test)[:1])  # compiles
    began = time.process_time()
    predicted = classifier.predict(cases(test))
    return {
        "cpu_seconds": time.process_time() - began,
        "accuracy": float((predicted == test.targets).mean()),
        "parameters": None,
        "bytes": 4 * int(train.values.size),
    }


METHODS: dict[str, Callable[..., dict[str, Any]]] = {
    "gradsieve fit": gradsieve_network("steer"),
    "gradsieve fit --sieve off": gradsieve_network("off"),
    "nn.RNN": torch_network(nn.RNN),
    "nn.GRU": torch_network(nn.GRU),
    "nn.LSTM": torch_network(nn.LSTM),
    "1-NN DTW": nearest_neighbour,
}


def summary(results: list[dict[str, Any]], command: str) -> str:
    """Markdown: a table a data set."""
    lines = [
        "# Own data: real series, default flags",
        "",
        f"Made by `{command}`. Accuracy on the official test part: mean over seeds, and the lowest "
        "and highest. CPU time: to a trained network, search included; for DTW, to classify the "
        "test part. Bytes: float32 weights (C header with scaling for gradsieve); for DTW, the "
        "training series that it must keep.",
    ]
    names = list(dict.fromkeys(row["data"] for row in results))
    for name in names:
        note = "" if name in CHOSEN_WITH else " (not looked at when defaults were chosen)"
        columns = (
            "method", "accuracy", "lowest–highest", "seeds", "int8", "parameters", "bytes", "CPU s",
        )  # fmt: skip
        lines += ["", f"## {name}{note}", "", f"| {' | '.join(columns)} |"]
        lines.append("|---" * len(columns) + "|")
        for method in METHODS:
            rows = [row for row in results if (row["data"], row["method"]) == (name, method)]
            if not rows:
                continue
            accuracies = [row["accuracy"] for row in rows]
            int8 = [row["accuracy_int8"] for row in rows if "accuracy_int8" in row]
            size = f"{rows[0]['bytes']:,}"
            if "bytes_int8" in rows[0]:
                size += f" (int8 {rows[0]['bytes_int8']:,})"
            lines.append(
                f"| {method} | {statistics.mean(accuracies):.1%} | {min(accuracies):.1%}–"
                f"{max(accuracies):.1%} | {len(rows)} | "
                f"{f'{statistics.mean(int8):.1%}' if int8 else '–'} | "
                f"{rows[0]['parameters'] or '–'} | {size} | "
                f"{statistics.mean(row['cpu_seconds'] for row in rows):.1f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="*", default=[*CHOSEN_WITH, *UNSEEN])
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    asked.output.mkdir(parents=True, exist_ok=True)
    file = asked.output / "results.jsonl"
    results = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(row["data"], row["method"], row["seed"]) for row in results}
    for seed in range(asked.seeds):
        for name in asked.data:
            for method in asked.methods:
                random = method != "1-NN DTW"
                if (name, method, seed) in done or (seed and not random):
                    continue
                train, test = load(name)
                began = time.process_time()
                row = {"data": name, "method": method, "seed": seed}
                row |= METHODS[method](train, test, seed)
                row.setdefault("cpu_seconds", time.process_time() - began)
                results.append(row)
                with file.open("a") as lines:
                    lines.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    command = (
        f"OMP_NUM_THREADS=1 python benchmarks/own_data.py {asked.output} --seeds {asked.seeds}"
    )
    (asked.output / "summary.md").write_text(summary(results, command))


if __name__ == "__main__":
    main()
