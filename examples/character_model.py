"""A character model on a text, with a loss on every step, watched and sieved.

The text is the language reference that comes with Python (`pydoc_data`), or a file. Run:

    python examples/character_model.py --updates 400
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from pydoc_data.topics import topics

import torch
from torch import nn

import gradsieve.torch as gst

LENGTH, BATCH = 80, 16


class CharacterModel(nn.Module):
    def __init__(self, symbols: int, hidden: int = 64) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, 16)
        self.recurrent = nn.LSTM(16, hidden, num_layers=2)
        self.head = nn.Linear(hidden, symbols)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(self.embed(text))[0])


def numbered(text: str) -> tuple[torch.Tensor, int]:
    symbols = sorted(set(text))
    number = {symbol: index for index, symbol in enumerate(symbols)}
    return torch.tensor([number[symbol] for symbol in text]), len(symbols)


def train(text: torch.Tensor, symbols: int, policy: dict, updates: int, seed: int) -> dict:
    torch.manual_seed(seed)
    model = CharacterModel(symbols)
    inner = torch.optim.Adam(model.parameters(), lr=3e-3)
    optimizer = gst.Sieve(model, inner, every=5, **policy)
    look = gst.watch(
        model,
        every=max(updates // 4, 1),
        q_range=(-2.0, 2.0),
        constant_loss=gst.constant_loss(text),
    )
    held_out = text[-20 * LENGTH :]
    losses = []
    for _ in range(updates):
        starts = torch.randint(0, len(text) - len(held_out) - LENGTH - 1, (BATCH,))
        batch = torch.stack([text[s : s + LENGTH + 1] for s in starts], dim=1)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch[:-1]).flatten(0, 1), batch[1:].flatten())
        loss.backward()
        look.read(loss.detach())
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        test = held_out.reshape(20, LENGTH).T
        loss = nn.functional.cross_entropy(model(test[:-1]).flatten(0, 1), test[1:].flatten())
    bits = loss.item() / math.log(2)
    return {
        "bits": bits,
        "diagnosis": str(look.diagnosis()),
        "reach": look.last,
        **optimizer.counts,
    }


def main(updates: int, seeds: int, file: Path | None) -> dict[str, list[dict]]:
    content = file.read_text() if file else "\n".join(topics[name] for name in sorted(topics))
    text, symbols = numbered(content[:200_000])
    guess = gst.constant_loss(text) / math.log(2)
    print(
        f"{len(text)} characters, {symbols} symbols; a constant guess needs {guess:.2f} bits each"
    )
    policies = {
        "plain": {"q_range": (-1e6, 1e6), "policy": "skip"},
        "skip": {"q_range": (-2.0, 2.0), "policy": "skip"},
        "steer": {"q_range": (-2.0, 2.0), "policy": "steer"},
    }
    results = {}
    for name, policy in policies.items():
        runs = results[name] = [train(text, symbols, policy, updates, s) for s in range(seeds)]
        for run in runs:
            print(
                f"{name:<6} {run['bits']:.3f} bits a character, {run['skipped']} steps taken back"
            )
            print(f"       {run['diagnosis']}")
    return results


if __name__ == "__main__":
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--file", type=Path, default=None)
    main(**vars(parser.parse_args()))
