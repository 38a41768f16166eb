"""The sieve inside Lightning and Accelerate, the real libraries."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gradsieve.torch as gst
from gradsieve.errors import GradsieveError


def data() -> TensorDataset:
    generator = torch.Generator().manual_seed(0)
    return TensorDataset(
        torch.randn(24, 15, 3, generator=generator),
        torch.randint(0, 2, (24,), generator=generator),
    )


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(3, 5, batch_first=True)
        self.head = nn.Linear(5, 2)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        return self.head(self.recurrent(u)[0][:, -1])


SKIP = {"policy": "skip", "q_range": (-0.5, 0.5)}


def sieve(model: nn.Module) -> gst.Sieve:
    return gst.Sieve(
        model, torch.optim.Adam(model.parameters(), lr=0.01), "skip", q_range=(-0.5, 0.5)
    )


def plain_training() -> tuple[Net, gst.Sieve]:
    torch.manual_seed(0)
    model = Net()
    optimizer = sieve(model)
    for u, t in DataLoader(data(), batch_size=8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(u), t).backward()
        optimizer.step()
    return model, optimizer


def assert_same(model: nn.Module, optimizer: gst.Sieve) -> None:
    expected, expected_optimizer = plain_training()
    assert optimizer.counts == expected_optimizer.counts
    assert optimizer.counts["steps"] == 3
    for one, other in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(one.detach(), other.detach())


def test_lightning_trains_with_it_and_logs_its_verdicts(tmp_path):
    from lightning.pytorch import LightningModule, Trainer

    from gradsieve.torch.watching.lightning import SieveLogger

    class Lit(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.net = Net()

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            optimizer = sieve(self.net)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 10)]

    lit = Lit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning on its own workers and devices
        trainer = Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            callbacks=[SieveLogger()],
        )
        trainer.fit(lit, DataLoader(data(), batch_size=8))
    optimizer = trainer.optimizers[0]
    assert isinstance(optimizer, gst.Sieve)
    assert_same(lit.net, optimizer)
    assert float(trainer.callback_metrics["gradsieve/steps"]) == 3
    assert float(trainer.callback_metrics["gradsieve/Q"]) == pytest.approx(optimizer.last.Q)
    checkpoint = tmp_path / "saved.ckpt"
    trainer.save_checkpoint(checkpoint)
    loaded = torch.load(checkpoint, weights_only=True)["optimizer_states"][0]
    assert loaded["gradsieve"]["counts"]["steps"] == 3


def test_lightning_without_a_sieve_is_told_so(tmp_path):
    from lightning.pytorch import LightningModule, Trainer

    from gradsieve.torch.watching.lightning import SieveLogger

    class Bare(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def training_step(self, batch, index):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
            callbacks=[SieveLogger()],
        )
        with pytest.raises(GradsieveError, match="configure_optimizers"):
            trainer.fit(Bare(), DataLoader(data(), batch_size=8))


def test_accelerate_trains_with_it():
    from accelerate import Accelerator

    torch.manual_seed(0)
    model = Net()
    optimizer = sieve(model)
    accelerator = Accelerator(cpu=True)
    prepared, wrapped, loader = accelerator.prepare(
        model, optimizer, DataLoader(data(), batch_size=8)
    )
    for u, t in loader:
        wrapped.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(prepared(u), t))
        wrapped.step()
    assert_same(model, optimizer)
