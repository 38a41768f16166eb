"""A recorded call in the shape that the theory uses, whatever layout the module has."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn.utils.rnn import pad_packed_sequence

from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.record import Call
from gradsieve.torch.modules.stack import Place, Stack


@dataclass(frozen=True)
class Sequences:
    """A call: time first, a batch axis, padded, in the precision of the weights."""

    inputs: Tensor  # (T,B,I)
    lengths: Tensor | None  # (B,), None where all have T steps
    initial: dict[Place, State]  # parts (B,·)
    outputs: Tensor | None  # (T,B,directions·H), where they can stand for a second forward pass
    by_output: Tensor | None  # ∂E/∂outputs, (T,B,directions·H)
    by_last: list[Tensor | None]  # ∂E/∂(last state), parts (layers·directions,B,·)


def sequences(stack: Stack, call: Call, like: Tensor) -> Sequences:
    """A call in this shape, in the precision of `like`."""
    inputs, lengths = _time_first(stack, call, call.inputs.value)
    batch = inputs.shape[1]
    by_output = call.gradients.get("outputs")
    if by_output is not None:
        by_output = _time_first(stack, call, by_output)[0].to(like.dtype)
    known = None
    if call.packing is None and not call.outputs.changed and call.outputs.value.dtype == like.dtype:
        known = _time_first(stack, call, call.outputs.value)[0]
    rows = len(stack.places)
    last = [call.gradients.get(name) for name in ("h", "c")[: stack.cell.states]]
    return Sequences(
        inputs.to(like.dtype),
        lengths,
        _initial(stack, call, batch, like),
        known,
        by_output,
        [None if part is None else part.reshape(rows, batch, -1).to(like.dtype) for part in last],
    )


def _time_first(stack: Stack, call: Call, values: Tensor) -> tuple[Tensor, Tensor | None]:
    """(T,B,·), and the lengths of packed sequences."""
    if call.packing is not None:
        padded, lengths = pad_packed_sequence(call.packing._replace(data=values))
        return padded, lengths.to(padded.device)
    if values.dim() == 2:
        return values.unsqueeze(1), None
    return values.transpose(0, 1) if stack.batch_first else values, None


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
