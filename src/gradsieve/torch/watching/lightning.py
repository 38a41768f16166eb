"""For Lightning: a callback that logs the sieve's verdicts.

The sieve itself needs nothing: return it from `configure_optimizers`.
"""

from __future__ import annotations

from typing import Any

from gradsieve.errors import GradsieveError, MissingExtra
from gradsieve.torch.applying.optimizer import Sieve

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise MissingExtra("gradsieve.torch.watching.lightning", "lightning") from error


class SieveLogger(Callback):
    """Logs `gradsieve/Q`, `gradsieve/kept` and the counters after every training batch."""

    def on_train_start(self, trainer: Trainer, module: LightningModule) -> None:
        if not _sieves(trainer):
            raise GradsieveError(
                "SieveLogger found no gst.Sieve; return one from configure_optimizers()"
            )

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        for number, sieve in enumerate(_sieves(trainer)):
            if sieve.last is None:
                continue
            prefix = "gradsieve" if number == 0 else f"gradsieve{number}"
            values = {f"{prefix}/Q": sieve.last.Q, f"{prefix}/kept": float(sieve.last.keep)}
            counts = {f"{prefix}/{name}": float(count) for name, count in sieve.counts.items()}
            module.log_dict({**values, **counts})


def _sieves(trainer: Trainer) -> list[Sieve]:
    return [one for one in trainer.optimizers if isinstance(one, Sieve)]
