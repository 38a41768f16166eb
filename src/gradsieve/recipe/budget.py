"""How much a run may see and compute, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gradsieve.errors import InvalidArgument
from gradsieve.settings import Settings, setting


@dataclass(frozen=True)
class Budget(Settings):
    """Epochs of minibatches, validations, and the reasons to stop early."""

    epochs: int = setting(2000, "Epochs at most.", least=1, whole=True)
    iterations: int = setting(50, "Minibatches in an epoch.", least=1, whole=True)
    batch: int = setting(
        10, "Sequences in a minibatch, drawn with replacement.", least=1, whole=True
    )
    sizes: tuple[int, int, int] = setting(
        (20_000, 1_000, 10_000),
        "Training, validation and test sequences that are drawn.",
        shape="three whole numbers above 0",
    )
    validate_every: int = setting(
        1, "Epochs from one validation, and record, to the next.", least=1, whole=True
    )
    stop_at: float | None = setting(
        0.99, "A validation accuracy above this ends the run.", none=True
    )
    patience: int | None = setting(
        None, "Epochs without a better validation that end the run.", least=1, whole=True, none=True
    )
    probe_every: int = setting(
        10, "Validations from one look inside the network to the next; 0 is never.", least=0,
        whole=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            sizes = tuple(int(size) for size in self.sizes)
            fits = len(sizes) == 3 and min(sizes) >= 1 and sizes == tuple(self.sizes)
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidArgument(f"sizes is {self.sizes}; it must be three whole numbers above 0")
        object.__setattr__(self, "sizes", sizes)

    def ended(
        self, epoch: int, best: float, best_epoch: int
    ) -> Literal["epochs", "solved", "patience"]:
        """Why a run ends after this epoch; "epochs" where only the last one ends it."""
        if self.stop_at is not None and best > self.stop_at:
            return "solved"
        if self.patience is not None and epoch - best_epoch >= self.patience:
            return "patience"
        return "epochs"
