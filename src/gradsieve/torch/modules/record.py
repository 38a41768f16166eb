"""The calls of a recurrent module, and the gradients that came back to them.

For each call a `Recorder` keeps references to the inputs and initial states, and hooks on the
outputs receive ∂E/∂(outputs) from whatever stands above: no second loss, no second backward. It
stores nothing while `listening` is False.

A call whose initial state is the last state of an earlier call, with its graph, continues it: a
loop that feeds a cell one step at a time, or truncated BPTT whose state is carried on. Calls that
continue each other are one *chain*, and are measured as one call over all their steps.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from gradsieve.torch.fast.layer import let_follow
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules import listening
from gradsieve.torch.modules.cells import State
from gradsieve.torch.modules.dropout import DropoutDraw, about_to_draw
from gradsieve.torch.modules.followed import Followed
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
    last: tuple[tuple[weakref.ref[Tensor], int], ...] = ()  # the last state, with its versions
    drawn: DropoutDraw | None = None  # where units were dropped between its layers
    earlier: Call | None = None  # the call that this one continues
    continued: bool = False
    gradients: dict[str, Tensor] = field(default_factory=dict)  # by "outputs", "h", "c"
    followed: Followed | None = None  # what a layer of ours left behind

    def remember_all(self, names: tuple[str, ...], tensors: tuple[Tensor, ...]) -> None:
        """Receive the gradients of these tensors under these names."""
        for name, tensor in zip(names, tensors, strict=False):
            self._remember(name, tensor)

    def _remember(self, name: str, tensor: Tensor) -> None:
        if tensor.requires_grad:
            tensor.register_hook(lambda gradient: self._add(name, gradient))  # type: ignore[no-untyped-call]

    def _add(self, name: str, gradient: Tensor | None) -> None:
        if gradient is None:  # to a node with several outputs PyTorch says so of those unused
            return
        gradient = gradient.detach()
        known = self.gradients.get(name)
        self.gradients[name] = gradient if known is None else known + gradient

    def continues(self, earlier: Call) -> bool:
        """Take an earlier call as the one that this one continues, if nobody else has."""
        if earlier.continued or earlier.packing is not None or self.packing is not None:
            return False
        self.earlier, earlier.continued = earlier, True
        return True

    @property
    def given_changed(self) -> bool:
        """Whether inputs or initial states were changed in place after the call."""
        begun = () if self.earlier is not None else self.initial or ()
        return self.inputs.changed or any(part.changed for part in begun)


Chain = list[Call]


class Recorder:
    """The calls of a model's recurrent modules since they were last forgotten."""

    def __init__(self, stacks: list[Stack], memory: Memory | None = None) -> None:
        """With `memory`, calls of our own layers are followed on their way back."""
        self.listening = True
        self.memory = memory
        self.calls: dict[Stack, list[Call]] = {stack: [] for stack in stacks}
        self._stacks = {stack.module: stack for stack in stacks}
        self._drawn: dict[nn.Module, DropoutDraw | None] = {}
        listening.connect(self, list(self._stacks))

    def called(self, module: nn.Module) -> None:
        """Note the dropout that a call is about to draw."""
        if self.listening and torch.is_grad_enabled():
            self._drawn[module] = about_to_draw(module)

    def heard(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        """Keep a call that can come back with a gradient; the result, as the caller gets it."""
        if not (self.listening and torch.is_grad_enabled()):
            return result
        stack = self._stacks[module]
        if stack.single_steps and _is_pair(result):
            # h is computed from c inside the cell. The gradient of a view of c is its own.
            result = (result[0], result[1].view_as(result[1]))
        given, state = _given(args, kwargs)
        outputs, last = (result[0], result[1:]) if _is_pair(result) else (result, ())
        ends = parts_of(last[0]) if last else ()
        if stack.single_steps:
            ends = (outputs, *ends)
        call = _call(given, state, outputs, ends)
        if call is None:
            return result
        call.drawn = self._drawn.pop(module, None)
        if not stack.single_steps:
            call.remember_all(("outputs", "h", "c"), (_data(outputs), *ends))
        else:
            call.remember_all(("outputs", "c"), ends)
        if self.memory is not None and len(stack.places) == 1 and not stack.single_steps:
            call.followed = Followed(self.memory)
            let_follow(_data(outputs), call.followed, stack.batch_first)
        calls = self.calls[stack]
        if state is not None and stack.directions == 1:
            earlier = _whose_end(parts_of(state), calls)
            if earlier is not None:
                call.continues(earlier)
        calls.append(call)
        return result

    def finished(self) -> dict[Stack, list[Chain]]:
        """The calls to which a gradient has come back, by module; modules without are left out."""
        done = {stack: _chains(calls) for stack, calls in self.calls.items()}
        return {stack: chains for stack, chains in done.items() if chains}

    def forget(self) -> None:
        for calls in self.calls.values():
            calls.clear()
        if self.memory is not None:
            self.memory.reset()

    def forget_finished(self) -> None:
        """Forget the calls whose gradient has come back; the others still wait for theirs."""
        for calls in self.calls.values():
            calls[:] = [call for call in calls if not call.gradients]

    def close(self) -> None:
        """Stop listening for good."""
        listening.disconnect(self)
        self.listening = False
        self.forget()


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """Inputs and initial state, whatever the module calls them."""
    given = args[0] if args else kwargs.get("input", kwargs.get("inputs"))
    return given, args[1] if len(args) > 1 else kwargs.get("hx", kwargs.get("state"))


def _call(given: Any, state: Any, outputs: Any, ends: State) -> Call | None:
    """The call, or None where no gradient can come back to it."""
    values = _data(outputs)
    if not values.requires_grad:
        return None
    initial = None if state is None else tuple(Kept.of(part) for part in parts_of(state))
    packing = outputs if isinstance(outputs, PackedSequence) else None
    if packing is not None:
        packing = packing._replace(data=packing.data.new_empty(0))
    last = tuple((weakref.ref(part), part._version) for part in ends)
    return Call(Kept.of(_data(given)), Kept.of(values), initial, packing, last)


def _whose_end(state: State, calls: list[Call]) -> Call | None:
    """The call whose last state this is: the same tensors, with their graph, unchanged."""
    for call in reversed(calls):
        if len(call.last) == len(state) and all(
            reference() is part and part._version == version
            for (reference, version), part in zip(call.last, state, strict=True)
        ):
            return call
    return None


def _chains(calls: list[Call]) -> list[Chain]:
    """Calls that have a gradient, each behind the one that it continues."""
    chains: list[Chain] = []
    by_end: dict[int, Chain] = {}
    for call in calls:
        if not call.gradients:
            continue
        chain = [] if call.earlier is None else by_end.get(id(call.earlier), [])
        if not chain:
            chains.append(chain)
        chain.append(call)
        by_end[id(call)] = chain
    return chains


def _is_pair(result: Any) -> bool:
    return isinstance(result, tuple) and not isinstance(result, PackedSequence)


def parts_of(state: Any) -> State:
    """A state as a tuple of its parts."""
    return (state,) if isinstance(state, Tensor) else tuple(state)


def _data(values: Any) -> Tensor:
    return values.data if isinstance(values, PackedSequence) else values
