"""What a recurrent module was given, and what gradient came back to it.

A `Recorder` hangs forward hooks on the recurrent modules. For each call it keeps references to the
inputs and initial states, and hooks on the outputs receive ∂E/∂(outputs) from whatever stands
above: no second loss, no second backward. It stores nothing while `listening` is False.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from gradsieve.torch.cells import State
from gradsieve.torch.stack import Stack


@dataclass(eq=False)
class Call:
    """One call of a recurrent module, as it was made."""

    inputs: Tensor | PackedSequence
    initial: State | None
    outputs: Tensor | PackedSequence
    gradients: dict[str, Tensor] = field(default_factory=dict)  # by "outputs", "h", "c"

    def remember(self, name: str, tensor: Tensor) -> None:
        if tensor.requires_grad:
            tensor.register_hook(lambda gradient: self._add(name, gradient))  # type: ignore[no-untyped-call]

    def _add(self, name: str, gradient: Tensor) -> None:
        gradient = gradient.detach()
        known = self.gradients.get(name)
        self.gradients[name] = gradient if known is None else known + gradient


@dataclass(frozen=True)
class Sequences:
    """A call in one shape: time first, a batch axis, padded, in the dtype of the weights."""

    inputs: Tensor  # (T,B,I)
    lengths: Tensor | None  # (B,), None where all have T steps
    initial: list[list[State]]  # by layer and direction, parts (B,·)
    outputs: Tensor | None  # (T,B,directions·H), where they can stand for a second forward pass
    by_output: Tensor | None  # ∂E/∂outputs, (T,B,directions·H)
    by_last: list[Tensor | None]  # ∂E/∂(last state), parts (layers·directions,B,·)


class Recorder:
    """Forward hooks on the recurrent modules of a model."""

    def __init__(self, stacks: list[Stack]) -> None:
        self.listening = True
        self.calls: dict[Stack, list[Call]] = {stack: [] for stack in stacks}
        self._handles = [
            stack.module.register_forward_hook(self._hook(stack), with_kwargs=True)
            for stack in stacks
        ]

    def _hook(self, stack: Stack) -> Any:
        def record(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            if not (self.listening and torch.is_grad_enabled()):
                return
            call = _call(args, kwargs, result)
            if call is not None:
                self.calls[stack].append(call)

        return record

    def finished(self) -> dict[Stack, list[Call]]:
        """The calls to which a gradient has come back, by module; modules without are left out."""
        done = {
            stack: [call for call in calls if call.gradients] for stack, calls in self.calls.items()
        }
        return {stack: calls for stack, calls in done.items() if calls}

    def forget(self) -> None:
        for calls in self.calls.values():
            calls.clear()

    def detach(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self.forget()


def _call(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Call | None:
    given = list(args) + [kwargs[name] for name in ("input", "inputs") if name in kwargs]
    state = args[1] if len(args) > 1 else kwargs.get("hx", kwargs.get("state"))
    outputs, last = (result[0], result[1:]) if _is_pair(result) else (result, ())
    values = outputs.data if isinstance(outputs, PackedSequence) else outputs
    if not values.requires_grad:
        return None
    initial = None if state is None else tuple(part.detach() for part in _parts(state))
    call = Call(_detached(given[0]), initial, _detached(outputs))
    call.remember("outputs", values)
    if last:
        for name, part in zip(("h", "c"), _parts(last[0]), strict=False):
            call.remember(name, part)
    return call


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple) and not isinstance(result, PackedSequence)


def _parts(state: Any) -> tuple[Tensor, ...]:
    return (state,) if isinstance(state, Tensor) else tuple(state)


def _detached(values: Tensor | PackedSequence) -> Tensor | PackedSequence:
    if isinstance(values, PackedSequence):
        return values._replace(data=values.data.detach())
    return values.detach()


def sequences(stack: Stack, call: Call, like: Tensor) -> Sequences:
    """A call in the shape that the theory uses, whatever layout the module has."""
    inputs, lengths = _time_first(stack, call.inputs)
    unbatched = inputs.dim() == 2
    if unbatched:
        inputs = inputs.unsqueeze(1)
    batch = inputs.shape[1]
    by_output = call.gradients.get("outputs")
    if by_output is not None:
        whole = (
            call.outputs._replace(data=by_output)
            if isinstance(call.outputs, PackedSequence)
            else by_output
        )
        by_output = _time_first(stack, whole)[0].to(like.dtype)
        by_output = by_output.unsqueeze(1) if unbatched else by_output
    known = None
    if isinstance(call.outputs, Tensor) and call.outputs.dtype == like.dtype:
        known = _time_first(stack, call.outputs)[0]
        known = known.unsqueeze(1) if unbatched else known
    own = stack.layers * stack.directions
    last = [call.gradients.get(name) for name in ("h", "c")[: stack.cell.states]]
    return Sequences(
        inputs.to(like.dtype),
        lengths,
        _initial(stack, call.initial, batch, like),
        known,
        by_output,
        [None if part is None else part.reshape(own, batch, -1).to(like.dtype) for part in last],
    )


def _time_first(stack: Stack, values: Tensor | PackedSequence) -> tuple[Tensor, Tensor | None]:
    if isinstance(values, PackedSequence):
        padded, lengths = pad_packed_sequence(values)
        return padded, lengths.to(padded.device)
    if stack.batch_first and values.dim() == 3:
        values = values.transpose(0, 1)
    return values, None


def _initial(stack: Stack, given: State | None, batch: int, like: Tensor) -> list[list[State]]:
    """Initial states by layer and direction; zero where none were given."""
    own = stack.layers * stack.directions
    if given is None:
        sizes = _state_sizes(stack)
        parts = [like.new_zeros(own, batch, size) for size in sizes]
    else:
        parts = [part.reshape(own, batch, -1).to(like.dtype) for part in given]
    return [
        [
            tuple(part[layer * stack.directions + direction] for part in parts)
            for direction in range(stack.directions)
        ]
        for layer in range(stack.layers)
    ]


def _state_sizes(stack: Stack) -> list[int]:
    """Units of h, which W_hh reads, and of the other parts, which stand behind the gates."""
    rows, columns = stack.weights()[0][0]["weight_hh"].shape
    return [columns] + [rows // len(stack.cell.gates)] * (stack.cell.states - 1)
