"""Working memory that is used again: judging a step needs megabytes, and so does judging the next.

Fresh memory of that size comes from the operating system page by page, which costs as much as the
arithmetic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import Any


class Memory:
    """Objects by key; whoever resets it must be done with all that were handed out."""

    def __init__(self) -> None:
        self._held: dict[Hashable, list[Any]] = defaultdict(list)
        self._used: dict[Hashable, int] = defaultdict(int)

    def take(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """One made for this key that nobody holds since the last reset, or a new one."""
        held, used = self._held[key], self._used[key]
        if used == len(held):
            held.append(make())
        self._used[key] = used + 1
        return held[used]

    def reset(self) -> None:
        """Hand out from the beginning again, and let go of what the last round did not use.

        A round in which nothing was used counts as none.
        """
        if not self._used:
            return
        for key, held in list(self._held.items()):
            del held[self._used[key] :]
            if not held:
                del self._held[key]
        self._used.clear()
