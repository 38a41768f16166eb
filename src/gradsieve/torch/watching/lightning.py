"""For Lightning: a callback that watches the model and logs its readings.

The sieve itself needs nothing: return it from `configure_optimizers`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from gradsieve.errors import needs_extra
from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.watching.sinks import Sink
from gradsieve.torch.watching.watch import EVERY, Watch, watch

with needs_extra("gradsieve.torch.watching.lightning", "lightning"):
    from lightning.pytorch import Callback, LightningModule, Trainer


class LightningWatch(Callback):
    """Logs each reading to the trainer's loggers, under `gradsieve/`.

    Args:
        every: one reading in this many training steps.
        sinks: called with the step and the reading, too.

    Attributes:
        look: the `gst.Watch`, while the trainer trains.
    """

    def __init__(self, every: int = EVERY, sinks: Iterable[Sink] = ()) -> None:
        self.every = every
        self.sinks = list(sinks)
        self.look: Watch | None = None
        self._loss: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, such as those for other processes: without the watch."""
        return {**self.__dict__, "look": None}

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        optimizers = list(trainer.optimizers)
        chosen = next((one for one in optimizers if isinstance(one, Sieve)), optimizers[0])
        by_norm = trainer.gradient_clip_algorithm in (None, "norm")
        clip = trainer.gradient_clip_val if by_norm else None
        self.look = watch(
            pl_module,
            chosen,
            every=self.every,
            sinks=self.sinks,
            clip=float(clip) if clip else None,
        )

    def on_before_backward(
        self, trainer: Trainer, pl_module: LightningModule, loss: Tensor
    ) -> None:
        self._loss = loss.detach()

    def on_before_optimizer_step(
        self, trainer: Trainer, pl_module: LightningModule, optimizer: Any
    ) -> None:
        if self.look is None:
            return
        values = self.look.read(self._loss)
        if values:
            pl_module.log_dict({f"gradsieve/{name}": value for name, value in values.items()})

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        if self.look is not None:
            self.look.close()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        if self.look is not None:
            self.look.recorder.close()
