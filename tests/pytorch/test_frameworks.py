"""The sieve and its monitor inside Lightning, Accelerate and Transformers, the real libraries."""

from __future__ import annotations

import copy
import importlib
import pickle

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gradsieve.torch as gst


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


@pytest.mark.filterwarnings("ignore")  # Lightning's, on its own workers and devices
@pytest.mark.parametrize("clip", [None, 0.1])
def test_lightning_trains_with_it_and_logs_what_is_read(tmp_path, clip):
    from lightning.pytorch import LightningModule, Trainer
    from lightning.pytorch.loggers import CSVLogger

    from gradsieve.torch.watching.lightning import LightningWatch

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

    lit, readings = Lit(), []
    trainer = Trainer(
        max_epochs=1,
        accelerator="cpu",
        gradient_clip_val=clip,
        logger=CSVLogger(tmp_path),
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        callbacks=[LightningWatch(every=2, sinks=[lambda at, reading: readings.append(reading)])],
    )
    trainer.fit(lit, DataLoader(data(), batch_size=8))
    optimizer = trainer.optimizers[0]
    assert isinstance(optimizer, gst.Sieve)
    assert len(readings) == 2
    last = readings[-1]
    assert last["sieve/steps"] == 2
    assert last["loss"] > 0
    if clip is None:
        assert_same(lit.net, optimizer)
        assert "clip/share" not in last
    else:
        assert last["clip/share"] == 1.0
        assert last["clip/factor"] == pytest.approx(clip / last["gradient_norm"])
    logged = trainer.callback_metrics
    for name, value in last.items():
        assert float(logged[f"gradsieve/{name}"]) == pytest.approx(value, rel=1e-5)
    assert (
        "gradsieve/net.recurrent/layer0/slow_Q" in next(tmp_path.rglob("metrics.csv")).read_text()
    )
    checkpoint = tmp_path / "saved.ckpt"
    trainer.save_checkpoint(checkpoint)
    loaded = torch.load(checkpoint, weights_only=True)["optimizer_states"][0]
    assert loaded["gradsieve"]["counts"]["steps"] == 3


@pytest.mark.filterwarnings("ignore")
def test_the_trainer_of_transformers_trains_with_it_and_keeps_what_is_read(tmp_path, monkeypatch):
    from transformers import Trainer, TrainingArguments

    from gradsieve.torch.watching.transformers import TransformersWatch

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = Net()

        def forward(self, u, labels):
            logits = self.net(u)
            return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}

    torch.manual_seed(0)
    model = Own()
    optimizer = sieve(model)
    trainer = Trainer(
        model,
        TrainingArguments(
            output_dir=str(tmp_path),
            num_train_epochs=2,
            per_device_train_batch_size=8,
            max_grad_norm=0.1,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=[{"u": u, "labels": t} for u, t in data()],
        optimizers=(optimizer, None),
        callbacks=[TransformersWatch(every=2)],
    )
    trainer.train()
    assert optimizer.counts["steps"] == optimizer.counts["judged"] == 6
    read = [one for one in trainer.state.log_history if "gradsieve/gradient_norm" in one]
    assert [one["step"] for one in read] == [2, 4]
    norms = [one["grad_norm"] for one in trainer.state.log_history if "grad_norm" in one]
    last = read[-1]
    assert last["gradsieve/gradient_norm"] == pytest.approx(norms[3])
    bitten = [0.1 / norm for norm in norms[2:4] if norm > 0.1]
    assert last["gradsieve/clip/share"] == len(bitten) / 2
    assert last["gradsieve/sieve/steps"] == 4
    assert "gradsieve/net.recurrent/layer0/slow_Q" in last


@pytest.mark.parametrize("way", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("framework", ["lightning", "transformers"])
def test_copies_of_a_callback_are_free_of_its_watch(framework, way):
    """A trainer that has trained is pickled with its callbacks to train in other processes."""
    module = importlib.import_module(f"gradsieve.torch.watching.{framework}")
    callback = getattr(module, f"{framework.title()}Watch")(every=7)
    with gst.watch(nn.GRU(2, 3)) as callback.look:
        copied = way(callback)
    assert copied.look is None
    assert copied.every == 7
    assert callback.look is not None


def test_accelerate_trains_with_it():
    from accelerate import Accelerator
    from accelerate.tracking import GeneralTracker

    torch.manual_seed(0)
    model = Net()
    optimizer = sieve(model)
    logged: list[tuple[int, dict[str, float]]] = []

    class Tracker(GeneralTracker):
        name, requires_logging_directory, tracker = "own", False, None

        def store_init_configuration(self, values):
            pass

        def log(self, values, step=None, **kwargs):
            logged.append((step, values))

    accelerator = Accelerator(cpu=True, log_with=Tracker())
    accelerator.init_trackers("gradsieve")
    prepared, wrapped, loader = accelerator.prepare(
        model, optimizer, DataLoader(data(), batch_size=8)
    )
    look = gst.watch(
        prepared, every=2, sinks=[lambda at, values: accelerator.log(dict(values), step=at)]
    )
    for u, t in loader:
        wrapped.zero_grad()
        accelerator.backward(nn.functional.cross_entropy(prepared(u), t))
        look.read()
        wrapped.step()
    assert_same(model, optimizer)
    assert [at for at, _ in logged] == [0, 2]
    assert all("recurrent/layer0/slow_Q" in values for _, values in logged)
