"""An optimizer around another one, to which schedulers, scalers and trainers see no difference."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torch.optim import Optimizer

from gradsieve.errors import InvalidArgument


class Wrapped(Optimizer):
    """Groups, state and defaults are those of the wrapped `optimizer`."""

    # A fused optimizer would take GradScaler's scale itself; here gradients come unscaled.
    _step_supports_amp_scaling = False

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer):
            raise InvalidArgument(f"optimizer is {optimizer!r}; it must be a torch.optim.Optimizer")
        self.optimizer = optimizer
        given = inspect.signature(type(optimizer).step).parameters.get("closure")
        self._needs_closure = given is not None and given.default is inspect.Parameter.empty
        # What Optimizer.__init__ sets up, but for groups and state.
        self._optimizer_step_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Any] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Any] = OrderedDict()
        self._patch_step_function()

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        return self.optimizer.param_groups

    @param_groups.setter
    def param_groups(self, groups: list[dict[str, Any]]) -> None:
        self.optimizer.param_groups = groups

    @property
    def state(self) -> Any:
        return self.optimizer.state

    @state.setter
    def state(self, state: Any) -> None:
        self.optimizer.state = state

    @property
    def defaults(self) -> dict[str, Any]:
        return self.optimizer.defaults

    @defaults.setter
    def defaults(self, defaults: dict[str, Any]) -> None:
        self.optimizer.defaults = defaults

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        self.optimizer.add_param_group(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none)

    def plain_step(self, closure: Callable[[], Any] | None) -> Callable[[], Any]:
        """The wrapped optimizer's step; it gets the closure only where it cannot do without."""
        if closure is not None and self._needs_closure:
            return lambda: self.optimizer.step(closure)
        return lambda: self.optimizer.step()
