"""`gst.Sieve`: any PyTorch optimizer, with its steps judged before they stand.

`step()` lets the wrapped optimizer take its step, finds what it changed in the recurrent modules,
predicts what that does to the far gradient, and keeps the step or takes it back exactly. Verdicts
are those of `gradsieve.sieve`; the wrapper holds the recorded calls, the counters and nothing else.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.distributed
from torch import nn
from torch.optim import Optimizer

from gradsieve import sieve as core
from gradsieve.change import WINDOW
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.sieve import Verdict
from gradsieve.torch import judging
from gradsieve.torch.carried import Carried
from gradsieve.torch.correction import Correction
from gradsieve.torch.judging import Evidence
from gradsieve.torch.memory import Memory
from gradsieve.torch.record import Recorder
from gradsieve.torch.rollback import Snapshot, scale_velocity
from gradsieve.torch.stack import check_held, find_stacks
from gradsieve.torch.steering import q_gradient

BETWEEN = "not judged: between judged steps"
COUNTERS = ("steps", "judged", "kept", "skipped", "steered", "stalls", "unjudged")


class Sieve(Optimizer):
    """Wrap an optimizer so that updates which would lose the far gradient are not made.

    >>> import torch, gradsieve.torch as gst
    >>> model = torch.nn.LSTM(2, 8)
    >>> optimizer = gst.Sieve(model, torch.optim.Adam(model.parameters()), q_range=(-1, 1))
    >>> outputs, _ = model(torch.randn(20, 4, 2))
    >>> outputs[-1].square().mean().backward()
    >>> optimizer.step()
    >>> optimizer.last.keep in (True, False), optimizer.counts["steps"]
    (True, 1)

    Args:
        model: where to look for recurrent modules.
        optimizer: any optimizer that holds their parameters.
        policy: "skip", "steer" or "hold".
        q_range, max_change, estimator, horizon, stall_after, steer_rate, window, orientation: as in
            `gradsieve.Sieve`.
        on_skip: what becomes of the velocity (momentum buffers, first moments) when a step is
            taken back: "keep" restores it exactly, "decay" lets it decay, "reset" zeroes it.
        every: judge one step in so many; those between are plain steps.
        synchronise: come to one verdict over all processes of torch.distributed; by default
            wherever there is more than one.

    Attributes:
        last: the verdict on the last step.
        verdicts: the same by name of the recurrent module.
        counts: steps, judged, kept, skipped, steered, stalls, unjudged.
    """

    # A fused optimizer would take GradScaler's scale itself; here gradients come unscaled.
    _step_supports_amp_scaling = False

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        q_range: tuple[float, float] = core.OWN_RANGE,
        max_change: float | None = None,
        estimator: str = "full",
        policy: str = "skip",
        horizon: int | None = None,
        on_skip: str = "keep",
        stall_after: int = 50,
        steer_rate: float = 0.02,
        window: float = WINDOW,
        orientation: str = "text",
        every: int = 1,
        synchronise: bool | None = None,
    ) -> None:
        if policy == "select":
            raise InvalidArgument(
                "policy is 'select'; around a PyTorch optimizer it may be 'skip', 'steer' or "
                "'hold', because step() sees the minibatch's gradient and not each example's"
            )
        if every < 1:
            raise InvalidArgument(f"every is {every}; it must be at least 1")
        if not isinstance(optimizer, Optimizer):
            raise InvalidArgument(f"optimizer is {optimizer!r}; it must be a torch.optim.Optimizer")
        self.sieve = core.Sieve(
            q_range=q_range,
            max_change=max_change,
            estimator=estimator,  # type: ignore[arg-type]
            policy=policy,  # type: ignore[arg-type]
            horizon=horizon,
            on_skip=on_skip,  # type: ignore[arg-type]
            stall_after=stall_after,
            steer_rate=steer_rate,
            window=window,
            orientation=orientation,  # type: ignore[arg-type]
        )
        self.model = model
        self.optimizer = optimizer
        self.every = every
        self.synchronise = synchronise
        self.stacks = find_stacks(model)
        self._modules = list(model.named_modules())
        self._needs_closure = _needs_closure(optimizer)
        check_held(self.stacks, optimizer)
        self.recorder = Recorder(self.stacks)
        self.counts = dict.fromkeys(COUNTERS, 0)
        self.skipped_in_a_row = 0
        self.last: Verdict | None = None
        self.verdicts: dict[str, Verdict] = {}
        self._warned: set[str] = set()
        self._memory = Memory()
        self._carried = Carried(optimizer)
        self._make_an_optimizer()

    def _make_an_optimizer(self) -> None:
        """What Optimizer.__init__ sets up, but for groups and state: they are the wrapped one's."""
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
        # Calls whose gradient has just been thrown away (a step that GradScaler left out) must not
        # be judged with the next ones; a call that still waits for its backward stays.
        for calls in self.recorder.calls.values():
            calls[:] = [call for call in calls if not call.gradients]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step and judge it. Returns the closure's loss, where there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.recorder.listening = False  # an optimizer may call its closure again
        judged = self.counts["steps"] % self.every == 0
        self.counts["steps"] += 1
        take = self._plain_step(closure)
        try:
            self._decide(take, judged)
        finally:
            self.recorder.forget()
            self.recorder.listening = self.counts["steps"] % self.every == 0
        return loss

    def _plain_step(self, closure: Callable[[], Any] | None) -> Callable[[], Any]:
        if closure is not None and self._needs_closure:
            return lambda: self.optimizer.step(closure)
        return lambda: self.optimizer.step()

    def _decide(self, take: Callable[[], Any], judged: bool) -> None:
        if not judging.finite_gradients(self.optimizer):
            self._skip({"": Verdict(False, core.NOT_FINITE)}, None)
            return
        if not judged:
            take()
            self._carried.move()
            self._note({"": Verdict(True, BETWEEN)})
            return
        evidence = self._evidence()
        self.counts["judged"] += 1
        if self.sieve.policy in ("steer", "hold"):
            self._steer(evidence, take)
        else:
            self._judge(evidence, take)

    def _judge(self, evidence: list[Evidence], take: Callable[[], Any]) -> None:
        waiting = [one for one in evidence if not one.unjudged]
        depends = [one for one in waiting if self.sieve.needs_change(one.measured.Q)]
        snapshot = Snapshot(self.optimizer) if depends else None
        take()
        verdicts: dict[str, Verdict] = {}
        for one in evidence:
            if one.unjudged:
                verdicts[one.stack.name] = self._unjudged(one)
            elif one in depends:
                change = judging.predict(one, self.sieve, self._together)
                verdicts[one.stack.name] = self.sieve.judge(change)
            else:
                verdicts[one.stack.name] = self.sieve.judge(one.measured)
        if snapshot is not None and not all(verdict.keep for verdict in verdicts.values()):
            snapshot.restore()
            self._skip(verdicts, take)
        else:
            self._note(verdicts)

    def _steer(self, evidence: list[Evidence], take: Callable[[], Any]) -> None:
        """Keep the step and add the smallest correction along ∂Q/∂w that turns Q back.

        What is left of earlier corrections comes first: it is a part of the step, as momentum is.
        """
        verdicts: dict[str, Verdict] = {}
        corrections: list[Correction] = []
        for one in evidence:
            Q = one.measured.Q
            wanted = 0 if one.unjudged else self.sieve.wanted_sign(Q)
            if one.unjudged:
                verdicts[one.stack.name] = self._unjudged(one)
            elif wanted == 0:
                known = not math.isnan(Q)
                reason = core.IN_RANGE if known else core.NOT_FINITE
                verdicts[one.stack.name] = Verdict(known, reason, Q)
            else:
                slope = q_gradient(one, self.sieve, self._together)
                before = [parameter.detach().clone() for parameter in one.stack.parameters()]
                corrections.append(Correction(one.stack, wanted, Q, slope, before))
        if not all(verdict.keep for verdict in verdicts.values()):
            self._skip(verdicts, None)
            return
        snapshot = None if self.sieve.max_change is None else Snapshot(self.optimizer)
        carried = dict(self._carried.left)
        take()
        self._carried.move()
        steered = 0
        for correction in corrections:
            verdict, corrected = correction.apply(self.sieve.steer_rate, self._carried)
            verdicts[correction.stack.name] = verdict
            steered += corrected
        for one in evidence:
            refused = judging.too_large(one, self.sieve, self._together)
            if refused is not None:
                verdicts[one.stack.name] = refused
        if snapshot is not None and not all(verdict.keep for verdict in verdicts.values()):
            snapshot.restore()
            self._carried.left = carried
            self._skip(verdicts, take)
        else:
            self.counts["steered"] += steered
            self._note(verdicts)

    def _skip(self, verdicts: dict[str, Verdict], take: Callable[[], Any] | None) -> None:
        """The step has been taken back: the velocity's fate, and the end of a stall."""
        self.skipped_in_a_row += 1
        if self.sieve.on_skip != "keep":
            self._slow_down(reset=self.sieve.on_skip == "reset")
        if self.skipped_in_a_row < self.sieve.stall_after:
            self._note(verdicts)
            return
        self.counts["stalls"] += 1
        self.skipped_in_a_row = 0
        verdict = judging.overall(verdicts, self.sieve)
        warnings.warn(
            f"the sieve has taken back {self.sieve.stall_after} steps in a row "
            f"(the last one: {verdict.reason})"
            + ("" if take is None else "; it forgets the velocity and takes this step plainly"),
            stacklevel=5,
        )
        if take is not None:
            self._slow_down(reset=True)
            take()
            verdicts = {
                name: replace(verdict, keep=True, reason=core.STALL_BROKEN)
                for name, verdict in verdicts.items()
            }
        self._note(verdicts)

    def _slow_down(self, reset: bool) -> None:
        scale_velocity(self.optimizer, reset)
        self._carried.reset() if reset else self._carried.decay()

    def _note(self, verdicts: dict[str, Verdict]) -> None:
        self.verdicts = verdicts
        self.last = judging.overall(verdicts, self.sieve)
        if self.last.keep:
            self.skipped_in_a_row = 0
        self.counts["kept" if self.last.keep else "skipped"] += 1

    def _unjudged(self, evidence: Evidence) -> Verdict:
        reason = str(evidence.unjudged)
        self.counts["unjudged"] += 1
        if reason not in self._warned:
            self._warned.add(reason)
            name = evidence.stack.name or type(evidence.stack.module).__name__
            warnings.warn(f"steps of {name} are kept but {reason}", stacklevel=6)
        return Verdict(True, reason)

    def _evidence(self) -> list[Evidence]:
        self._check_model()
        finished = self.recorder.finished()
        if not finished and not self._together:
            raise GradsieveError(
                "no gradient has come back to a recurrent module since the last step(); call the "
                "model with gradients enabled and loss.backward() before optimizer.step()"
            )
        self._memory.reset()
        stacks = self.stacks if self._together else list(finished)
        return [
            judging.gather(stack, finished.get(stack, []), self.sieve, self._together, self._memory)
            for stack in stacks
        ]

    @property
    def _together(self) -> bool:
        distributed = torch.distributed
        if self.synchronise is False or not distributed.is_available():
            return False
        return distributed.is_initialized() and distributed.get_world_size() > 1

    def _check_model(self) -> None:
        modules = list(self.model.named_modules())
        if modules == self._modules:
            return
        self._modules = modules
        found = [(stack.name, stack.module) for stack in find_stacks(self.model)]
        if found != [(stack.name, stack.module) for stack in self.stacks]:
            raise GradsieveError(
                "the recurrent modules of the model are not those it had when the sieve was made; "
                "make a new gst.Sieve after changing a model"
            )

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, and the sieve's counters under "gradsieve"."""
        own = {
            "counts": dict(self.counts),
            "skipped_in_a_row": self.skipped_in_a_row,
            "carried": self._carried.saved(self._recurrent_parameters()),
        }
        return {**self.optimizer.state_dict(), "gradsieve": own}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of this class, or of the wrapped optimizer's own."""
        rest = {name: value for name, value in state_dict.items() if name != "gradsieve"}
        self.optimizer.load_state_dict(rest)
        own = state_dict.get("gradsieve", {})
        self.counts = {name: int(own.get("counts", {}).get(name, 0)) for name in COUNTERS}
        self.skipped_in_a_row = int(own.get("skipped_in_a_row", 0))
        self._carried.load(own.get("carried", {}), self._recurrent_parameters())
        self.recorder.forget()
        self.recorder.listening = self.counts["steps"] % self.every == 0

    def _recurrent_parameters(self) -> list[torch.Tensor]:
        return [parameter for stack in self.stacks for parameter in stack.module.parameters()]

    def close(self) -> None:
        """Take the hooks off the model."""
        self.recorder.detach()

    def __repr__(self) -> str:
        return f"Sieve({self.optimizer!r}, {self.sieve})"


def _needs_closure(optimizer: Optimizer) -> bool:
    given = inspect.signature(type(optimizer).step).parameters.get("closure")
    return given is not None and given.default is inspect.Parameter.empty
