"""A recorded chain of calls in the shape that the theory uses, whatever layout the module has."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_packed_sequence

from gradsieve.torch.fast.layer import Passes
from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.record import Call, Chain
from gradsieve.torch.modules.stack import Place, Stack


@dataclass(frozen=True)
class TimeFirst:
    """A chain of calls: time first, a batch axis, padded, in the precision of the weights."""

    inputs: Tensor  # (T,B,I)
    lengths: Tensor | None  # (B,), None where all have T steps
    initial: dict[Place, State]  # parts (B,·)
    outputs: Tensor | None  # (T,B,directions·H), where they can stand for a second forward pass
    by_output: Tensor | None  # ∂E/∂outputs, (T,B,directions·H)
    masks: list[Tensor]  # by level but the top one, (T,B,directions·H); none without dropout
    by_last: list[Tensor | None]  # ∂E/∂(last state), parts (layers·directions,B,·)
    passes: Passes | None = None  # the forward pass, where a layer of ours has kept it


def sequences(stack: Stack, chain: Chain, like: Tensor) -> TimeFirst:
    """A chain in this shape, in the precision of `like`."""
    calls = [_Shaped(stack, call, like) for call in chain]
    inputs, lengths = _in_a_row([call.inputs for call in calls]), calls[0].lengths
    rows, batch = len(stack.places), inputs.shape[1]
    # The gradient of a state between two calls is carried back through it, and is no end.
    last = [chain[-1].gradients.get(name) for name in ("h", "c")[: stack.cell.states]]
    return TimeFirst(
        inputs,
        lengths,
        _initial(stack, chain[0], batch, like),
        _joined([call.outputs for call in calls]),
        _joined_gradients(calls),
        _joined_masks(calls),
        [None if part is None else part.reshape(rows, batch, -1).to(like.dtype) for part in last],
        passes_of(stack, chain),
    )


def passes_of(stack: Stack, chain: Chain) -> Passes | None:
    """What a layer of ours kept of its only call, while it is still true."""
    call = chain[0]
    if len(chain) > 1 or call.followed is None or call.outputs.changed:
        return None
    return call.followed.passes if call.followed.stands(stack.module) else None


class _Shaped:
    """One call: its tensors, time first."""

    def __init__(self, stack: Stack, call: Call, like: Tensor) -> None:
        self._stack, self._call, self._like = stack, call, like
        self.inputs, self.lengths = self._time_first(call.inputs.value)
        self.shape = self._time_first(call.outputs.value)[0].shape
        self.outputs, self.by_output = self._known_outputs(), call.gradients.get("outputs")
        if self.by_output is not None:
            self.by_output = self._time_first(self.by_output)[0]

    @property
    def masks(self) -> list[Tensor]:
        """By level but the top one; time first."""
        call, stack = self._call, self._stack
        if call.drawn is None:
            return []
        width = self._like.shape[1] * stack.directions
        if call.packing is not None:
            drawn = call.drawn.masks(stack.layers - 1, call.outputs.value.shape, call.outputs.value)
            return [self._time_first(mask)[0] for mask in drawn]
        shape = torch.Size([*self.shape[:2], width])
        drawn = call.drawn.masks(stack.layers - 1, shape, call.outputs.value)
        return [mask.to(self._like.dtype) for mask in drawn]

    def _known_outputs(self) -> Tensor | None:
        call, outputs = self._call, self._call.outputs
        if call.packing is not None or outputs.changed or outputs.value.dtype != self._like.dtype:
            return None
        return self._time_first(outputs.value)[0]

    def _time_first(self, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """(T,B,·), and the lengths of packed sequences."""
        values = values.to(self._like.dtype)
        if self._call.packing is not None:
            padded, lengths = pad_packed_sequence(self._call.packing._replace(data=values))
            return padded, lengths.to(padded.device)
        if self._stack.single_steps:
            return values.reshape(1, -1, values.shape[-1]), None
        if values.dim() == 2:
            return values.unsqueeze(1), None
        return values.transpose(0, 1) if self._stack.batch_first else values, None


def _joined_masks(calls: list[_Shaped]) -> list[Tensor]:
    """Of each level; a call that was made without dropout has ones."""
    levels = max(len(call.masks) for call in calls)
    if levels == 0:
        return []
    ones = [call.inputs.new_ones(call.shape) for call in calls]
    rows = [call.masks or [one] * levels for call, one in zip(calls, ones, strict=True)]
    return [torch.cat(parts) for parts in zip(*rows, strict=True)]


def _joined(parts: list[Tensor | None]) -> Tensor | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    return _in_a_row(known)


def _in_a_row(parts: list[Tensor]) -> Tensor:
    """One after the other in time; a single one as it is."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _joined_gradients(calls: list[_Shaped]) -> Tensor | None:
    if all(call.by_output is None for call in calls):
        return None
    return _in_a_row(
        [
            call.inputs.new_zeros(call.shape) if call.by_output is None else call.by_output
            for call in calls
        ]
    )


def _initial(stack: Stack, call: Call, batch: int, like: Tensor) -> dict[Place, State]:
    """Initial states; zero where none were given."""
    rows = len(stack.places)
    if call.initial is None:
        parts = [like.new_zeros(rows, batch, size) for size in _state_sizes(stack)]
    else:
        parts = [part.value.reshape(rows, batch, -1).to(like.dtype) for part in call.initial]
    return {place: tuple(part[row] for part in parts) for row, place in enumerate(stack.places)}


def _state_sizes(stack: Stack) -> list[int]:
    """Units of h, which W_hh reads, and of the other parts, which stand behind the gates."""
    rows, columns = stack.weights()[Place(0, 0)]["weight_hh"].shape
    return [columns] + [rows // len(stack.cell.gates)] * (stack.cell.states - 1)
