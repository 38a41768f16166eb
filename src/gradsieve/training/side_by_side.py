"""Several runs at a time, each in a thread of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def side_by_side(
    works: Iterable[Callable[[], Result]], jobs: int | None, stop: threading.Event
) -> list[Result]:
    """The result of each work, `jobs` of them at a time; by default one a core.

    Ctrl-C sets `stop`: each work then ends early and returns its result so far. An error in one of
    them ends the others, too.
    """
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures = [pool.submit(work) for work in works]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            stop.set()
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            raise
