"""What a recurrent module was given, and what gradient came back to it.

For each call a `Recorder` keeps references to the inputs and initial states, and hooks on the
outputs receive ∂E/∂(outputs) from whatever stands above: no second loss, no second backward. It
stores nothing while `listening` is False.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradsieve.torch.modules import listening
from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.stack import Stack


@dataclass(frozen=True)
class Kept:
    """A tensor as it was when it was recorded; whoever changes it in place changes its version."""

    value: Tensor
    version: int

    @staticmethod
    def of(tensor: Tensor) -> Kept:
        return Kept(tensor.detach(), tensor._version)

    @property
    def changed(self) -> bool:
        """Whether it was changed in place since."""
        return self.value._version != self.version


@dataclass(eq=False)
class Call:
    """One call of a recurrent module, as it was made."""

    inputs: Kept
    outputs: Kept
    initial: tuple[Kept, ...] | None
    packing: PackedSequence | None = None  # how inputs and outputs are packed, where they are
    gradients: dict[str, Tensor] = field(default_factory=dict)  # by "outputs", "h", "c"

    def remember(self, name: str, tensor: Tensor) -> None:
        if tensor.requires_grad:
            tensor.register_hook(lambda gradient: self._add(name, gradient))  # type: ignore[no-untyped-call]

    def _add(self, name: str, gradient: Tensor) -> None:
        gradient = gradient.detach()
        known = self.gradients.get(name)
        self.gradients[name] = gradient if known is None else known + gradient

    @property
    def given_changed(self) -> bool:
        """Whether inputs or initial states were changed in place after the call."""
        return self.inputs.changed or any(part.changed for part in self.initial or ())


class Recorder:
    """The calls of a model's recurrent modules since they were last forgotten."""

    def __init__(self, stacks: list[Stack]) -> None:
        self.listening = True
        self.calls: dict[Stack, list[Call]] = {stack: [] for stack in stacks}
        self._stacks = {stack.module: stack for stack in stacks}
        listening.connect(self, list(self._stacks))

    def heard(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Keep a call that can come back with a gradient."""
        if not (self.listening and torch.is_grad_enabled()):
            return
        call = _call(args, kwargs, result)
        if call is not None:
            self.calls[self._stacks[module]].append(call)

    def finished(self) -> dict[Stack, list[Call]]:
        """The calls to which a gradient has come back, by module; modules without are left out."""
        done = {
            stack: [call for call in calls if call.gradients] for stack, calls in self.calls.items()
        }
        return {stack: calls for stack, calls in done.items() if calls}

    def forget(self) -> None:
        for calls in self.calls.values():
            calls.clear()

    def forget_finished(self) -> None:
        """Forget the calls whose gradient has come back; the others still wait for theirs."""
        for calls in self.calls.values():
            calls[:] = [call for call in calls if not call.gradients]

    def close(self) -> None:
        """Stop listening for good."""
        listening.disconnect(self)
        self.listening = False
        self.forget()


def _call(args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Call | None:
    given = args[0] if args else kwargs.get("input", kwargs.get("inputs"))
    state = args[1] if len(args) > 1 else kwargs.get("hx", kwargs.get("state"))
    outputs, last = (result[0], result[1:]) if _is_pair(result) else (result, ())
    values = _data(outputs)
    if not values.requires_grad:
        return None
    initial = None if state is None else tuple(Kept.of(part) for part in parts_of(state))
    packing = outputs if isinstance(outputs, PackedSequence) else None
    if packing is not None:
        packing = packing._replace(data=packing.data.new_empty(0))
    call = Call(Kept.of(_data(given)), Kept.of(values), initial, packing)
    call.remember("outputs", values)
    if last:
        for name, part in zip(("h", "c"), parts_of(last[0]), strict=False):
            call.remember(name, part)
    return call


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple) and not isinstance(result, PackedSequence)


def parts_of(state: Any) -> State:
    """A state as a tuple of its parts."""
    return (state,) if isinstance(state, Tensor) else tuple(state)


def _data(values: Any) -> Tensor:
    return values.data if isinstance(values, PackedSequence) else values
