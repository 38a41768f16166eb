"""A classifier of real movements: plain, with steps skipped, and corrected.

BasicMotions (UEA archive, inside aeon): 40 + 40 recordings of 100 steps of a wrist-worn
accelerometer and gyroscope, four activities. Run:

    python examples/motion_classifier.py --epochs 60
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from aeon.datasets import load_basic_motions
from torch import nn

import gradsieve.torch as gst

POLICIES = {
    "plain": {"q_range": (-1e6, 1e6), "policy": "skip"},
    "skip": {"q_range": (-1.0, 1.0), "policy": "skip"},
    "steer": {"q_range": (-1.0, 1.0), "policy": "steer"},
}


class Classifier(nn.Module):
    def __init__(self, hidden: int = 24) -> None:
        super().__init__()
        self.recurrent = gst.RNN(6, hidden)
        self.head = nn.Linear(hidden, 4)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(u)[0][-1])


def load(split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Recordings (T,B,6), each channel by its mean and spread in training, and class numbers."""
    train, _ = load_basic_motions(split="train")
    series, labels = load_basic_motions(split=split)
    mean, spread = train.mean((0, 2), keepdims=True), train.std((0, 2), keepdims=True)
    values = ((series - mean) / spread).transpose(2, 0, 1).astype(np.float32)
    names = sorted(set(labels))
    return torch.from_numpy(values), torch.tensor([names.index(label) for label in labels])


def train(policy: str, epochs: int, seed: int) -> dict:
    torch.manual_seed(seed)
    (u, t), (u_test, t_test) = load("train"), load("test")
    model = Classifier()
    inner = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    optimizer = gst.Sieve(model, inner, **POLICIES[policy])
    for _ in range(epochs):
        for batch in torch.randperm(len(t)).split(10):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(u[:, batch]), t[batch]).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    with torch.no_grad():
        correct = float((model(u_test).argmax(1) == t_test).float().mean())
    return {"correct": correct, "Q": optimizer.last.Q, **optimizer.counts}


def main(epochs: int, seeds: int) -> dict[str, list[dict]]:
    print(f"BasicMotions, 24 tanh units, {epochs} epochs; a constant guess gets 25 %")
    results = {}
    for policy in POLICIES:
        runs = results[policy] = [train(policy, epochs, seed) for seed in range(seeds)]
        correct = ", ".join(f"{run['correct']:.0%}" for run in runs)
        last = ", ".join(f"{run['Q']:.1f}" for run in runs)
        skipped = ", ".join(str(run["skipped"]) for run in runs)
        corrected = ", ".join(str(run["corrected"]) for run in runs)
        print(
            f"{policy:<6} correct {correct:<25} last Q {last:<22} taken back {skipped:<18} "
            f"corrected {corrected}"
        )
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    main(**vars(parser.parse_args()))
