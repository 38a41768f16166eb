"""The adding problem with a GRU and an LSTM: does the sieve help gated cells?

Two numbers in a sequence of random ones are marked; the target is their mean. Run:

    python examples/adding_problem.py --updates 1500
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import gradsieve as gs
import gradsieve.torch as gst

# "plain" also goes through the sieve, with a range that nothing leaves, so that Q is seen.
POLICIES = {
    "plain": {"q_range": (-1e6, 1e6), "policy": "skip"},
    "skip": {"q_range": (-1.0, 1.0), "policy": "skip"},
    "steer": {"q_range": (-1.0, 1.0), "policy": "steer"},
}


class Adder(nn.Module):
    def __init__(self, recurrent: type[nn.RNNBase], hidden: int) -> None:
        super().__init__()
        self.recurrent = recurrent(2, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(u)[0][-1])


def train(recurrent: type[nn.RNNBase], policy: str, length: int, updates: int, seed: int) -> dict:
    """One network; returns the share of correct answers, the last Q and the counters."""
    torch.manual_seed(seed)
    task = gs.tasks.adding(length=length)
    model = Adder(recurrent, hidden=32)
    inner = torch.optim.Adam(model.parameters(), lr=3e-3)
    optimizer = gst.Sieve(model, inner, every=5, **POLICIES[policy])
    reach = 0.0
    for update in range(updates):
        u, t = (torch.from_numpy(array).float() for array in task.sample(20, seed=update))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(u), t).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if optimizer.last.Q == optimizer.last.Q:
            reach = optimizer.last.Q
    u, t = (torch.from_numpy(array).float() for array in task.sample(1000, seed=10**6))
    with torch.no_grad():
        error = (model(u) - t).abs()
    return {"correct": float((error <= 0.08).float().mean()), "Q": reach, **optimizer.counts}


def main(length: int, updates: int, seeds: int) -> dict[str, list[dict]]:
    print(f"adding, {length} steps, {updates} updates; a constant guess gets 15 %")
    results: dict[str, list[dict]] = {}
    for recurrent in (nn.GRU, nn.LSTM):
        for policy in POLICIES:
            runs = [train(recurrent, policy, length, updates, seed) for seed in range(seeds)]
            results[f"{recurrent.__name__} {policy}"] = runs
            correct = ", ".join(f"{run['correct']:.0%}" for run in runs)
            last = ", ".join(f"{run['Q']:.1f}" for run in runs)
            skipped = ", ".join(str(run["skipped"]) for run in runs)
            print(
                f"{recurrent.__name__:<5} {policy:<6} correct {correct:<15} last Q {last:<12} "
                f"steps taken back {skipped}"
            )
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--seeds", type=int, default=2)
    main(**vars(parser.parse_args()))
