"""Temporal order with a simple recurrent network in PyTorch: what the policy "hold" changes.

Two symbols stand far apart in a sequence of others, and which of four orders it was is asked at the
end. Adam alone learns it in some networks and not in others. Run (some minutes):

    python examples/temporal_order_torch.py
    python examples/temporal_order_torch.py --start identity --length 200 --learning-rate 3e-5
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import gradsieve as gs
import gradsieve.torch as gst

# "Adam" also goes through the sieve, with a range that nothing leaves, so that slow Q is seen.
ARMS = {
    "Adam": {"policy": "hold", "q_range": (-1e6, 1e6)},
    "Adam and hold": {"policy": "hold"},
}


class Classifier(nn.Module):
    def __init__(self, inputs: int, hidden: int, outputs: int, start: str) -> None:
        super().__init__()
        self.recurrent = gst.RNN(inputs, hidden)
        self.head = nn.Linear(hidden, outputs)
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.normal_(std=0.1) if "weight" in name else parameter.zero_()
        if start == "identity":
            nn.init.eye_(self.recurrent.weight_hh_l0)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(u)[0][-1])


def train(
    arm: str, start: str, length: int, learning_rate: float, updates: int, seed: int
) -> dict[str, float]:
    """One network; returns the share of correct answers, the last slow Q and the corrections."""
    torch.manual_seed(seed)
    task = gs.tasks.temporal_order(length=length)
    model = Classifier(task.inputs, 100, task.outputs, start)
    inner = torch.optim.Adam(model.parameters(), lr=learning_rate)
    optimizer = gst.Sieve(model, inner, **ARMS[arm])
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=updates)
    for update in range(updates):
        u, t = (torch.from_numpy(array) for array in task.sample(20, seed=update))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(u), t).backward()
        optimizer.step()
        schedule.step()
    u, t = (torch.from_numpy(array) for array in task.sample(1000, seed=10**6))
    with torch.no_grad():
        correct = (model(u).argmax(1) == t).float().mean()
    assert optimizer.last is not None
    return {
        "correct": float(correct),
        "Q": optimizer.last.Q,
        "corrected": optimizer.counts["corrected"],
    }


def main(
    start: str, length: int, learning_rate: float, updates: int, seeds: int
) -> dict[str, list[dict[str, float]]]:
    print(f"temporal order, {length} steps, {updates} updates, {start} start; a guess gets 25 %")
    results = {}
    for arm in ARMS:
        runs = [train(arm, start, length, learning_rate, updates, seed) for seed in range(seeds)]
        results[arm] = runs
        correct = ", ".join(f"{run['correct']:.0%}" for run in runs)
        last = ", ".join(f"{run['Q']:.1f}" for run in runs)
        corrected = ", ".join(str(run["corrected"]) for run in runs)
        print(f"{arm:<14} correct {correct:<18} slow Q {last:<18} steps corrected {corrected}")
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--start", choices=("gaussian", "identity"), default="gaussian")
    parser.add_argument("--length", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=1)
    main(**vars(parser.parse_args()))
