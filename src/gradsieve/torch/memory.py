"""Working memory that is used again: judging a step needs megabytes, and so does judging the next.

Fresh memory of that size comes from the operating system page by page, which costs as much as the
arithmetic. A `Memory` hands out tensors and, after `reset`, the same ones again.
"""

from __future__ import annotations

from collections import defaultdict

import torch
from torch import Tensor

_Kind = tuple[tuple[int, ...], torch.dtype, torch.device]


class Memory:
    """Tensors by shape; whoever resets it must be done with all that were handed out."""

    def __init__(self) -> None:
        self._held: dict[_Kind, list[Tensor]] = defaultdict(list)
        self._used: dict[_Kind, int] = defaultdict(int)

    def empty(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised tensor of this shape, with the dtype and device of another."""
        kind = (tuple(shape), like.dtype, like.device)
        held, used = self._held[kind], self._used[kind]
        if used == len(held):
            held.append(torch.empty(kind[0], dtype=kind[1], device=kind[2]))
        self._used[kind] = used + 1
        return held[used]

    def reset(self) -> None:
        """Hand out from the beginning again, and let go of what the last round did not use."""
        for kind, held in list(self._held.items()):
            del held[self._used[kind] :]
            if not held:
                del self._held[kind]
        self._used.clear()
