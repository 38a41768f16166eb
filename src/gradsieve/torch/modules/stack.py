"""The recurrent modules of a model, and the layers and directions that each of them has.

`find_stacks` walks a model once. PyTorch's own modules and ours, which are their subclasses, are
known by their class; any other module describes its cell by two attributes (see `Recurrent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.optim import Optimizer

from gradsieve.errors import InvalidArgument
from gradsieve.torch.modules import cells
from gradsieve.torch.modules.cells import Cell

LayerWeights = dict[str, Tensor]


class Place(NamedTuple):
    """One layer of a module in one direction of time (1 is the reverse one)."""

    layer: int
    direction: int

    @property
    def suffix(self) -> str:
        """As PyTorch's parameters of this layer end."""
        return f"_l{self.layer}" + ("_reverse" if self.direction else "")


StackWeights = dict[Place, LayerWeights]


@runtime_checkable
class Recurrent(Protocol):
    """A module of your own that the sieve can follow.

    It is called as `module(inputs)` or `module(inputs, state)`, where inputs are (T,B,I), or
    (B,T,I) if the module has a true `batch_first`, and the state is a tensor (B,H) or one for each
    part of the cell's state. It returns the outputs h(1)…h(T), or a tuple that begins with them.

    `recurrent_weights()` gives `weight_ih` (G·H,I), `weight_hh` (G·H,H), optionally `bias_ih` and
    `bias_hh` (G·H), and whatever else the cell's `update` reads, under names of your choice. They
    may be computed from parameters (a diagonal, a normalised weight): gradients go through.
    """

    recurrent_cell: Cell

    def recurrent_weights(self) -> Mapping[str, Tensor]: ...


@dataclass(frozen=True, eq=False)
class Stack:
    """One recurrent module: its layers, each with one or two directions in time."""

    name: str  # in the plain model, so that a checkpoint of a compiled one or of DDP's fits it
    module: nn.Module
    cell: Cell
    layers: int
    directions: int
    batch_first: bool
    own: bool = False  # a `Recurrent`, not one of PyTorch's
    single_steps: bool = False  # a cell that is called once for each step

    @property
    def places(self) -> list[Place]:
        """Every layer and direction, from the lowest layer up."""
        return [place for layer in range(self.layers) for place in self.level(layer)]

    def level(self, layer: int) -> list[Place]:
        """The directions of one layer."""
        return [Place(layer, direction) for direction in range(self.directions)]

    @property
    def label(self) -> str:
        """The name in the model; the class where the module is the model."""
        return self.name or type(self.module).__name__

    def weights(self) -> StackWeights:
        """Effective weights, attached to the parameters that they come from."""
        _refresh(self.module)
        if self.own:
            return {Place(0, 0): dict(cast("Recurrent", self.module).recurrent_weights())}
        if self.single_steps:
            return {Place(0, 0): _named_weights(self.module, "")}
        return {place: _named_weights(self.module, place.suffix) for place in self.places}

    def fixed_weights(self) -> StackWeights:
        """Copies in float32 or float64: an optimizer changes parameters in place."""
        return {
            place: {name: _copy(weight) for name, weight in own.items()}
            for place, own in self.weights().items()
        }

    def parameters(self) -> list[nn.Parameter]:
        return [parameter for parameter in self.module.parameters() if parameter.requires_grad]


def find_stacks(model: nn.Module) -> list[Stack]:
    """Every recurrent module of the model, or an InvalidArgument with a remedy."""
    _refuse_sharded(model)
    named = _inner(model).named_modules()
    stacks = [
        stack
        for name, module in named
        if (stack := _stack(f"{name}.".replace("_orig_mod.", "")[:-1], module))
    ]
    inside = {id(part) for stack in stacks if stack.own for part in stack.module.modules()} - {
        id(stack.module) for stack in stacks if stack.own
    }
    stacks = [stack for stack in stacks if id(stack.module) not in inside]
    if not stacks:
        raise InvalidArgument(
            f"model is a {type(model).__name__} without a recurrent module; the sieve follows "
            "nn.RNN, nn.GRU, nn.LSTM, their cells and modules that have recurrent_cell "
            "and recurrent_weights() (see gradsieve.torch.Recurrent)"
        )
    return stacks


def _inner(model: nn.Module) -> nn.Module:
    """The model inside torch.compile, DistributedDataParallel and DataParallel."""
    while True:
        name = "module" if isinstance(model, DistributedDataParallel | nn.DataParallel) else ""
        inner = getattr(model, name or "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _refuse_sharded(model: nn.Module) -> None:
    """Under FSDP no process has a whole recurrent matrix between its calls."""
    names = {type(part).__name__ for part in (*model.modules(), *model.parameters())}
    found = names & {"FullyShardedDataParallel", "DTensor", "FlatParameter"}
    if found or any(hasattr(module, "_get_fsdp_state") for module in model.modules()):
        raise InvalidArgument(
            "model is sharded by FSDP, so no process has its whole recurrent matrices; wrap it in "
            "DistributedDataParallel, or shard only the parts around the recurrent modules and "
            "give gst.Sieve the recurrent part with an optimizer of its own"
        )


def check_held(stacks: list[Stack], optimizer: Optimizer) -> None:
    """Every recurrent parameter that learns must be the optimizer's to move."""
    held = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for stack in stacks:
        missing = [
            name
            for name, parameter in stack.module.named_parameters()
            if parameter.requires_grad and id(parameter) not in held
        ]
        if missing:
            raise InvalidArgument(
                f"optimizer does not hold {', '.join(missing)} of "
                f"{stack.label!r}; build it with the parameters "
                "of this model, or freeze those by requires_grad_(False)"
            )


def _stack(name: str, module: nn.Module) -> Stack | None:
    if isinstance(module, Recurrent):
        batch_first = bool(getattr(module, "batch_first", False))
        return Stack(name, module, module.recurrent_cell, 1, 1, batch_first, own=True)
    if isinstance(module, nn.RNNCellBase):
        return Stack(name, module, _known_cell(name, module), 1, 1, False, single_steps=True)
    if not isinstance(module, nn.RNNBase):
        return None
    directions = 2 if module.bidirectional else 1
    return Stack(
        name, module, _known_cell(name, module), module.num_layers, directions, module.batch_first
    )


def _known_cell(name: str, module: nn.RNNBase | nn.RNNCellBase) -> Cell:
    if isinstance(module, nn.LSTM):
        return cells.PROJECTED_LSTM if module.proj_size else cells.LSTM
    if isinstance(module, nn.LSTMCell):
        return cells.LSTM
    if isinstance(module, nn.GRU | nn.GRUCell):
        return cells.GRU
    if isinstance(module, nn.RNN | nn.RNNCell):
        return cells.TANH if module.nonlinearity == "tanh" else cells.RELU
    raise InvalidArgument(
        f"model has a {type(module).__name__} at {name or 'its root'!r}, which the sieve cannot "
        "follow; give it a recurrent_cell and recurrent_weights() (see gradsieve.torch.Recurrent)"
    )


def _named_weights(module: nn.Module, suffix: str) -> LayerWeights:
    names = (*cells.LINEAR, "weight_hr")
    return {
        name: getattr(module, name + suffix) for name in names if hasattr(module, name + suffix)
    }


def _refresh(module: nn.Module) -> None:
    """Compute weights anew that PyTorch computes before each call: weight_norm, prune …"""
    for hook in module._forward_pre_hooks.values():
        if isinstance(hook, WeightNorm | SpectralNorm | BasePruningMethod):
            hook(module, ())


def _copy(weight: Tensor) -> Tensor:
    wide = weight.dtype if weight.dtype in (torch.float32, torch.float64) else torch.float32
    return weight.detach().to(wide, copy=True)
