"""Where readings go: a CSV file, TensorBoard, Weights & Biases. A sink is any function of
(step, reading), and a reading is a dict of numbers.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gradsieve.errors import GradsieveError, needs_extra
from gradsieve.torch.watching.reading import Reading

Sink = Callable[[int, Reading], object]


class ToTensorBoard:
    """Writes each number of a reading as a scalar."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        with needs_extra("gst.ToTensorBoard", "tensorboard"):
            from torch.utils.tensorboard import SummaryWriter
        self.writer: Any = SummaryWriter(os.fspath(directory))

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        self.writer.close()


class ToCSV:
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


class ToWandb:
    """Logs each reading to a run of Weights & Biases: this one, or the one that is active.

    Readings have an axis of their own, `gradsieve/step`, so that they do not disturb the training's
    logs under W&B's own step.
    """

    def __init__(self, run: Any = None) -> None:
        with needs_extra("gst.ToWandb", "wandb"):
            import wandb
        self.run: Any = wandb.run if run is None else run
        if self.run is None:
            raise GradsieveError("no run of W&B is active; call wandb.init() before gst.ToWandb()")
        self.run.define_metric("gradsieve/step", hidden=True)
        self.run.define_metric("gradsieve/*", step_metric="gradsieve/step")

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        named = {f"gradsieve/{name}": value for name, value in values.items()}
        self.run.log({"gradsieve/step": step, **named})
