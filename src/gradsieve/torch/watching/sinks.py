"""Where readings go: TensorBoard, or a CSV file. A sink is any function of (step, dict)."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gradsieve.errors import GradsieveError, MissingExtra


class TensorBoardSink:
    """Writes each number of a reading as a scalar."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("TensorBoardSink", "tensorboard") from error
        self.writer: Any = SummaryWriter(os.fspath(directory))

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class CSVSink:
    """One line for each number: step, name, value. Names may come and go between readings."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("w", newline="") as file:
                csv.writer(file).writerow(("step", "name", "value"))
        except OSError as error:
            raise GradsieveError(f"{path}: cannot be written ({error.strerror})") from error

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerows((step, name, repr(value)) for name, value in values.items())
