"""γ: the gradient that arrived at each sequence's last step, which is carried back in time.

For each direction of time there is one carrier. Its last step is each example's last one at which
any gradient arrives: that serves packed and padded sequences, outputs and last states alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gradsieve.network import Array
from gradsieve.torch.evidence.forward import in_own_time
from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.sequences import TimeFirst


@dataclass(frozen=True)
class Carrier:
    """γ of one direction: where it enters, in that direction's own time."""

    direction: int
    last: Tensor  # (B,) index of the last step that has a gradient; −1 where none has
    gamma: list[State]  # by layer, parts (B,·)
    steps: int

    @cached_property
    def last_steps(self) -> Array:
        """(B,): `last` in NumPy, whose calls cost a fraction of PyTorch's."""
        found: Array = self.last.cpu().numpy()
        return found

    def injected(self, layer: int) -> State:
        """Parts (T,B,·): a layer's γ at the last step, zero elsewhere."""
        entry = self.last.clamp(min=0)
        everyone = torch.arange(entry.shape[0], device=entry.device)
        return tuple(self._at(entry, everyone, part) for part in self.gamma[layer])

    def _at(self, entry: Tensor, everyone: Tensor, part: Tensor) -> Tensor:
        whole = part.new_zeros((self.steps, *part.shape))
        whole[entry, everyone] = part
        return whole

    def norms(self) -> Tensor:
        """(N,): ‖γ‖ of the examples that have a gradient, all layers side by side."""
        whole = torch.cat([part for row in self.gamma for part in row], -1)
        lengths: Tensor = torch.linalg.vector_norm(whole[self.last >= 0].double(), dim=-1)
        return lengths

    def far_steps(self, horizon: int | None) -> tuple[Tensor, Tensor]:
        """The index of each example's far step, and which examples are long enough for one."""
        if horizon is None:
            return torch.zeros_like(self.last), self.last >= 1
        far = self.last - horizon
        return far.clamp(min=0), far >= 0


def find_carrier(direction: int, given: TimeFirst) -> Carrier | None:
    """The carrier of one direction, or None where no gradient arrives."""
    states = [given.initial[place] for place in sorted(given.initial) if place[1] == direction]
    steps, (batch, width) = given.inputs.shape[0], states[-1][0].shape
    device = given.inputs.device
    directions = len(given.initial) // len(states)
    end = torch.full((batch,), steps, device=device) if given.lengths is None else given.lengths
    gamma = [[torch.zeros_like(part) for part in row] for row in states]
    last = torch.full((batch,), -1, device=device)
    mine: Tensor | None = None
    if given.by_output is not None:
        mine = given.by_output[..., direction * width : (direction + 1) * width]
        mine = in_own_time(mine, direction, given.lengths)
        last = _last_arrival(mine)
    ends = [None if part is None else part[direction::directions] for part in given.by_last]
    for rows in ends:
        if rows is not None:
            last = torch.where((rows != 0).any(-1).any(0), end - 1, last)
    if bool((last < 0).all()):
        return None
    if mine is not None:
        gamma[-1][0] = mine[last.clamp(min=0), torch.arange(batch, device=device)]
    for index, rows in enumerate(ends):
        if rows is not None:
            for layer, row in enumerate(rows):
                gamma[layer][index] = gamma[layer][index] + row
    return Carrier(direction, last, [tuple(row) for row in gamma], steps)


def _last_arrival(gradient: Tensor) -> Tensor:
    """(B,): the index of each example's last step whose gradient is not zero; −1 for none."""
    steps = gradient.shape[0]
    if bool((gradient[-1] != 0).any(-1).all()):  # the rule; saves looking at all the others
        return torch.full(gradient.shape[1:2], steps - 1, device=gradient.device)
    step = torch.arange(1, steps + 1, device=gradient.device).unsqueeze(1)
    return ((gradient != 0).any(-1) * step).amax(0) - 1
