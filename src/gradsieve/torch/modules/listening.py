"""Hearing of a module's calls without leaving anything in the module.

A hook that hangs in a module is copied and pickled with it and outlives whoever put it there. So
there is one global forward hook of PyTorch, present only while somebody listens, which passes the
calls of modules that are listened to on. Both sides are weak references: a listener that is dropped
is forgotten, and so is a module.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.hooks import RemovableHandle


class Listener(Protocol):
    """Hears of the calls of the modules that it asked for."""

    def heard(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None: ...


class _Switchboard:
    """Who listens to which module."""

    def __init__(self) -> None:
        self._listeners: weakref.WeakKeyDictionary[nn.Module, weakref.WeakSet[Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._listening: weakref.WeakSet[Any] = weakref.WeakSet()
        self._hook: RemovableHandle | None = None

    def connect(self, listener: Listener, modules: list[nn.Module]) -> None:
        for module in modules:
            self._listeners.setdefault(module, weakref.WeakSet()).add(listener)
        if listener not in self._listening:
            self._listening.add(listener)
            weakref.finalize(listener, self._hang_up).atexit = False
        if self._hook is None:
            self._hook = register_module_forward_hook(self._pass_on, with_kwargs=True)

    def disconnect(self, listener: Listener) -> None:
        for listeners in self._listeners.values():
            listeners.discard(listener)
        self._listening.discard(listener)
        self._hang_up()

    def _hang_up(self) -> None:
        """Take the hook away once nobody listens."""
        if self._hook is not None and not list(self._listening):
            self._hook.remove()
            self._hook = None

    def _pass_on(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        for listener in tuple(self._listeners.get(module, ())):
            listener.heard(module, args, kwargs, result)


_SWITCHBOARD = _Switchboard()
connect, disconnect = _SWITCHBOARD.connect, _SWITCHBOARD.disconnect
