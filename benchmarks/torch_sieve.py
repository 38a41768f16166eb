"""What a step of `gst.Sieve` costs, as a ratio to the same step without it.

One thread, Adam, float32, the variants taking turns; processor time of the thread, the least of the
turns. "auto, in range" is the mean over steps of which `auto` looks at a few.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import nn

import gradsieve.torch as gst

ALWAYS_IN, NEVER_IN = (-1e6, 1e6), (-1e6, -1e5)
VARIANTS = {
    "plain": None,
    "between looks": {"policy": "hold", "every": 10**6, "q_range": ALWAYS_IN},
    "looked at, in range": {"policy": "hold", "q_range": ALWAYS_IN},
    "auto, in range": {"policy": "auto", "q_range": ALWAYS_IN},
    "corrected": {"policy": "hold", "q_range": NEVER_IN},
}
MODULES = (nn.RNN, nn.GRU, nn.LSTM, gst.RNN, gst.GRU, gst.LSTM)
SIZES = ((100, 10, 100), (64, 32, 196))
MEAN_OVER, TURNS = 10, 4


def loop(make: type[nn.RNNBase], size: tuple[int, int, int], settings: dict | None) -> Callable:
    hidden, batch, steps = size
    torch.manual_seed(0)
    u, targets = torch.randn(steps, batch, 6), torch.randint(0, 4, (batch,))
    recurrent, head = make(6, hidden), nn.Linear(hidden, 4)
    model = nn.ModuleList([recurrent, head])
    for name, weight in recurrent.named_parameters():
        if "weight_hh" in name:
            for block in weight.detach().split(hidden):
                nn.init.orthogonal_(block)
    inner = torch.optim.Adam(model.parameters(), lr=1e-5)
    optimizer = inner if settings is None else gst.Sieve(model, inner, **settings)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(recurrent(u)[0][-1]), targets)
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def seconds(step: Callable, times: int) -> float:
    start = time.thread_time()
    for _ in range(times):
        step()
    return (time.thread_time() - start) / times


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'H, B, T':16}{'module':12}" + "".join(f"{name:>21}" for name in VARIANTS))
    for size in SIZES:
        for make in MODULES:
            steps = {name: loop(make, size, settings) for name, settings in VARIANTS.items()}
            least = {}
            for turn in range(TURNS + 1):
                for name, step in steps.items():
                    found = seconds(step, MEAN_OVER if name.startswith("auto") else 1)
                    if turn:
                        least[name] = min(least.get(name, found), found)
            label = f"{make.__module__.split('.')[0].replace('torch', 'nn')}.{make.__name__}"
            cells = [f"{1e3 * least['plain']:.2f} ms"]
            cells += [f"{least[name] / least['plain']:.2f} ×" for name in list(VARIANTS)[1:]]
            line = f"{', '.join(map(str, size)):16}{label.replace('gradsieve', 'gst'):12}"
            print(line + "".join(f"{cell:>21}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
