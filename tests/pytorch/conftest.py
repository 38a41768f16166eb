"""float64 where a test asks for it, one thread everywhere, and the same numbers every time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _same_numbers() -> Iterator[None]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def float64() -> None:
    torch.set_default_dtype(torch.float64)
