"""For the Trainer of Hugging Face Transformers: a callback that watches the model.

The sieve itself needs nothing: `Trainer(…, optimizers=(sieve, None))`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gradsieve.errors import needs_extra
from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.watching.gradients import GradientNorms
from gradsieve.torch.watching.sinks import Sink
from gradsieve.torch.watching.watch import EVERY, Watch, watch

with needs_extra("gradsieve.torch.watching.transformers", "transformers"):
    from transformers import TrainerCallback


class TransformersWatch(TrainerCallback):
    """Adds each reading to the Trainer's `state.log_history`, under `gradsieve/`.

    How clipping bites is told from the gradient norms that the Trainer logs, because it clips
    before callbacks see the gradient.

    Args:
        every: one reading in this many optimizer steps.
        sinks: called with the step and the reading, too; `ToTensorBoard` and `ToWandb` put
            readings beside the Trainer's.

    Attributes:
        look: the `gst.Watch`, while the Trainer trains.
    """

    def __init__(self, every: int = EVERY, sinks: Iterable[Sink] = ()) -> None:
        self.every = every
        self.sinks = list(sinks)
        self.look: Watch | None = None
        self._loss: float | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles, such as those for other processes: without the watch."""
        return {**self.__dict__, "look": None}

    def on_train_begin(
        self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any
    ) -> None:
        optimizer = kwargs.get("optimizer")
        if not isinstance(optimizer, Sieve):  # but Accelerate's wrapper of one
            optimizer = getattr(optimizer, "optimizer", optimizer)
        self.look = watch(model, optimizer, every=self.every, sinks=self.sinks)
        self.look.norms = GradientNorms(args.max_grad_norm or None, computed=False)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.look is None:
            return
        values = self.look.read(self._loss)
        if values:
            named = {f"gradsieve/{name}": value for name, value in values.items()}
            state.log_history.append({"step": state.global_step, "epoch": state.epoch, **named})

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any
    ) -> None:
        if logs is None or self.look is None:
            return
        self._loss = logs.get("loss", self._loss)
        if "grad_norm" in logs:
            self.look.norms.note(logs["grad_norm"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.look is not None:
            self.look.close()
