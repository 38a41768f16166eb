"""Where the time of a training step in PyTorch goes: its layers and ours, part by part.

H = 100, B = 10, T = 100, one thread; processor time of the thread in milliseconds, medians, the two
taking turns. "overhead" is the same step of one unit and one time step: all that is not arithmetic.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

import gradsieve.torch as gst

PARTS = ("zero_grad", "module", "head and loss", "backward", "optimizer")


def loop(make: Callable[[int, int], nn.Module], steps: int, batch: int, hidden: int):
    torch.manual_seed(0)
    u, targets = torch.randn(steps, batch, 6), torch.randint(0, 4, (batch,))
    recurrent, head = make(6, hidden), nn.Linear(hidden, 4)
    parameters = [*recurrent.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)

    def step() -> list[float]:
        marks = [time.thread_time()]
        optimizer.zero_grad()
        marks.append(time.thread_time())
        outputs = recurrent(u)[0]
        marks.append(time.thread_time())
        loss = nn.functional.cross_entropy(head(outputs[-1]), targets)
        marks.append(time.thread_time())
        torch.autograd.backward(loss)
        marks.append(time.thread_time())
        optimizer.step()
        marks.append(time.thread_time())
        return [1e3 * (end - start) for start, end in pairwise(marks)]

    return step


def main() -> None:
    torch.set_num_threads(1)
    kinds = {"RNN": (nn.RNN, gst.RNN), "GRU": (nn.GRU, gst.GRU), "LSTM": (nn.LSTM, gst.LSTM)}
    for name, (plain, fast) in kinds.items():
        compare(
            {
                f"nn.{name}": loop(plain, 100, 10, 100),
                f"gst.{name}": loop(fast, 100, 10, 100),
                f"gst.{name}, overhead": loop(fast, 1, 1, 1),
            }
        )


def compare(loops) -> None:
    found = defaultdict(list)
    for turn in range(220):
        for name, step in loops.items():
            parts = step()
            if turn >= 20:
                found[name].append(parts)
    print(f"{'':20}" + "".join(f"{part:>15}" for part in (*PARTS, "step")))
    for name, rows in found.items():
        medians = [statistics.median(part) for part in zip(*rows, strict=True)]
        medians.append(statistics.median(sum(row) for row in rows))
        print(f"{name:20}" + "".join(f"{value:>15.3f}" for value in medians))


if __name__ == "__main__":
    main()
