"""Hearing of a module's calls, and leaving nothing behind.

A forward hook is copied and pickled with its module, and it outlives whoever put it there. So each
module has one hook for all its listeners, which holds them by weak references and goes with the
last of them. While it is there, the module's `__getstate__` leaves it out: copies and pickles of
the module are free of it.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from typing import Any, Protocol

import torch
from torch import nn

STATE = "__getstate__"
HOOKS = ("_forward_hooks", "_forward_hooks_with_kwargs", "_forward_pre_hooks")


class Listener(Protocol):
    """Hears of the calls of the modules that it asked for, and passes their result on."""

    def called(self, module: nn.Module) -> None: ...

    def heard(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any: ...


class _Line:
    """The one pair of hooks of one module."""

    def __init__(self, module: nn.Module) -> None:
        self.listeners: weakref.WeakSet[Any] = weakref.WeakSet()
        self._module = weakref.ref(module)
        self._handles = [
            module.register_forward_pre_hook(self._called),
            module.register_forward_hook(self._heard, with_kwargs=True),
        ]
        module.__dict__[STATE] = self._state

    # A break in the graph, as PyTorch's own recurrent modules are.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _called(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        for listener in tuple(self.listeners):
            listener.called(module)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _heard(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> Any:
        for listener in tuple(self.listeners):
            result = listener.heard(module, args, kwargs, result)
        return result

    def _state(self) -> Any:
        """The module's state for copy and pickle, without the hook and without this function."""
        module: Any = self._module()
        kind: Any = type(module)
        state = kind.__getstate__(module)
        if not isinstance(state, dict):
            return state
        state = {name: value for name, value in state.items() if name != STATE}
        own = {handle.id for handle in self._handles}
        for name in HOOKS:
            kept = (item for item in state[name].items() if item[0] not in own)
            state[name] = OrderedDict(kept)
        return state

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()
        module = self._module()
        if module is not None:
            module.__dict__.pop(STATE, None)


_LINES: weakref.WeakKeyDictionary[nn.Module, _Line] = weakref.WeakKeyDictionary()


def connect(listener: Listener, modules: list[nn.Module]) -> None:
    """Let a listener hear of these modules' calls for as long as it lives."""
    weakref.finalize(listener, _hang_up).atexit = False
    for module in modules:
        if module not in _LINES:
            _LINES[module] = _Line(module)
        _LINES[module].listeners.add(listener)


def disconnect(listener: Listener) -> None:
    """Let it hear of nothing more."""
    for line in _LINES.values():
        line.listeners.discard(listener)
    _hang_up()


def _hang_up() -> None:
    """Take away the hooks that nobody listens to."""
    for module, line in list(_LINES.items()):
        if not list(line.listeners):
            line.close()
            del _LINES[module]
