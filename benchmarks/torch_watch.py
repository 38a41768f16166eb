"""What a look of gst.watch costs, in plain training steps, and in percent with the default `every`.

python benchmarks/torch_watch.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

import gradsieve.torch as gst

SIZES = ((100, 10, 100), (32, 32, 400), (128, 64, 100))  # H, B, T
MODULES: dict[str, Callable[[int], nn.Module]] = {
    "nn.RNN": lambda hidden: nn.RNN(6, hidden),
    "nn.GRU": lambda hidden: nn.GRU(6, hidden),
    "nn.LSTM": lambda hidden: nn.LSTM(6, hidden),
    "nn.LSTM, 2 layers": lambda hidden: nn.LSTM(6, hidden, num_layers=2),
    "nn.GRU, bidirectional": lambda hidden: nn.GRU(6, hidden, bidirectional=True),
}


def seconds(work: Callable[[], object]) -> float:
    """Processor time of this thread."""
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def steps_of_a_look(module: nn.Module, inputs: torch.Tensor, rounds: int = 6) -> float:
    """The least time of a look over that of a plain step; the two take turns."""
    optimizer = torch.optim.Adam(module.parameters())
    look = gst.watch(module, every=1)

    def backward() -> None:
        optimizer.zero_grad()
        module(inputs)[0][-1].square().sum().backward()

    plain, looks = [], []
    for _ in range(rounds):
        look.recorder.listening = False
        plain.append(seconds(lambda: (backward(), optimizer.step())))
        look.recorder.listening = True
        backward()
        looks.append(seconds(look.read))
    return min(looks) / min(plain)


def main() -> None:
    torch.set_num_threads(1)
    for hidden, batch, steps in SIZES:
        for name, make in MODULES.items():
            cost = steps_of_a_look(make(hidden), torch.randn(steps, batch, 6))
            share = cost / gst.watch(nn.RNN(2, 2)).every
            print(f"H={hidden} B={batch} T={steps} {name:<22} {cost:.1f} steps, {share:.2%}")


if __name__ == "__main__":
    main()
