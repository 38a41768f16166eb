"""`gst.Sieve`: any PyTorch optimizer, with its steps judged before they stand.

This is PyTorch's adapter of the sieve. At a look it measures each recurrent module, lets the
wrapped optimizer take its step, hands the policy the evidence it asks for, and carries out the
decision: it keeps the step, adds a correction, or takes the step back exactly. It decides nothing.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any, NoReturn, Self

import torch
import torch.distributed
from torch import nn
from torch.optim import Optimizer

from gradsieve import sieve as core
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.sieve import Decision, Evidence, Learning, Need, Reason, StallGuard, Verdict
from gradsieve.sieve.settings import PolicyName
from gradsieve.torch.applying import velocity
from gradsieve.torch.applying.clipping import Clip, Threshold
from gradsieve.torch.applying.look import Look
from gradsieve.torch.applying.remembered import Remembered
from gradsieve.torch.applying.snapshot import Snapshot, finite_gradients, moving_parameters
from gradsieve.torch.applying.successive import Successive, mean_over_processes
from gradsieve.torch.applying.wrapped import Wrapped
from gradsieve.torch.evidence.gather import gather
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.record import Recorder
from gradsieve.torch.modules.stack import Stack, check_held, find_stacks

Take = Callable[[], Any]


class Sieve(Wrapped):
    """Wrap an optimizer so that its steps do not lose the far gradient.

    >>> import torch, gradsieve.torch as gst
    >>> model = torch.nn.LSTM(2, 8)
    >>> optimizer = gst.Sieve(model, torch.optim.Adam(model.parameters()))
    >>> outputs, _ = model(torch.randn(20, 4, 2))
    >>> outputs[-1].square().mean().backward()
    >>> optimizer.step()
    >>> optimizer.last.keep, optimizer.counts["steps"]
    (True, 1)

    Args:
        model: where to look for recurrent modules.
        optimizer: any optimizer that holds their parameters.
        policy: "auto", "hold", "steer" or "skip", or a `gradsieve.Sieve`.
        clip: the norm at which the gradients of all the optimizer's parameters are clipped, or
            "auto": AutoClip's, a quantile of all norms so far.
        synchronise: come to one verdict over all processes of torch.distributed; by default
            wherever there is more than one.
        settings: single settings of `gradsieve.Sieve` by name, such as `every=10`.

    Attributes:
        last: the verdict on the last step.
        verdicts: the same by name of the recurrent module.
        unjudged: why a module could not be judged at the last look, by its name.
        counts: steps, judged, kept, skipped, corrected, stalls, unjudged, not_finite.
        reasons: how many steps had which reason, by `Reason.name`.
        corrections: how many steps were corrected or left out, and when; `print` says it in words.

    The model holds nothing of the sieve: copies and pickles of it are free of it, and the sieve
    goes with its last reference, with `close()`, or at the end of a `with` block.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        policy: PolicyName | core.Sieve = "auto",
        *,
        clip: Threshold | None = None,
        synchronise: bool | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(optimizer)
        self.policy = _settings(policy, settings).at_work()
        self.model = model
        self.clip = None if clip is None else Clip(clip)
        self.synchronise = synchronise
        self.stacks = find_stacks(model)
        self._modules = list(model.named_modules())
        check_held(self.stacks, optimizer)
        self._memory = Memory()
        self.recorder = Recorder(self.stacks, self._memory)
        self.last: Verdict | None = None
        self.verdicts: dict[str, Verdict] = {}
        self.unjudged: dict[str, str] = {}
        self._remembered = Remembered()
        self._successive = Successive()
        self._warned: set[str] = set()

    @property
    def sieve(self) -> core.Sieve:
        """The settings."""
        return self.policy.sieve

    @property
    def counts(self) -> dict[str, int]:
        return self._remembered.counts

    @property
    def reasons(self) -> dict[str, int]:
        return self._remembered.reasons

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        # Calls whose gradient has just been thrown away (a step that GradScaler left out) must not
        # be judged with the next ones.
        self.recorder.forget_finished()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step and judge it. Returns the closure's loss, where there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.recorder.listening = False  # an optimizer may call its closure again
        self.counts["steps"] += 1
        try:
            self._step(self.plain_step(closure))
        finally:
            self.recorder.forget()
            self.recorder.listening = self._remembered.looks_in <= 1
        return loss

    def _step(self, take: Take) -> None:
        if not finite_gradients(self.optimizer):
            self.counts["not_finite"] += 1
            self._left_out({"": Verdict(False, Reason.NOT_FINITE)}, take)
            return
        if self.clip is not None:
            self.clip(moving_parameters(self.optimizer))
        if self.policy.compares_gradients:
            for stack in self.stacks:
                learning = self._remembered.learning.setdefault(stack.name, Learning())
                learning.observe(self._successive.cosine(stack))
        frozen = not any(stack.parameters() for stack in self.stacks)
        self._remembered.looks_in -= 0 if frozen else 1
        if frozen or self._remembered.looks_in > 0:
            take()
            self._note({"": Verdict(True, Reason.NOT_LOOKED_AT)})
            return
        looks = self._look()
        self._decide(looks, take)
        next_look = min(self.policy.looks_in(look.evidence) for look in looks.values())
        self._remembered.looks_in = next_look

    def _look(self) -> dict[str, Look]:
        """Every recurrent module that has a gradient, measured."""
        self._check_model()
        finished = self.recorder.finished()
        if not finished and not self._together:
            raise GradsieveError(
                "no gradient has come back to a recurrent module since the last step(); call the "
                "model with gradients enabled and loss.backward() before optimizer.step()"
            )
        self.counts["judged"] += 1
        looks: dict[str, Look] = {}
        for stack in self.stacks if self._together else list(finished):
            chains = finished.get(stack, [])
            measured = gather(stack, chains, self.policy, self._together, self._memory)
            learning = self._remembered.learning.get(stack.name)
            if learning is not None and self._together:
                learning.agreement = mean_over_processes(learning.agreement)
            first = Evidence(measured.Q, learning)
            looks[stack.name] = Look(measured, self.policy, first, self._together)
        self._say_unjudged(looks)
        return looks

    def _decide(self, looks: dict[str, Look], take: Take) -> None:
        """Step, decide, and keep, correct or take back."""
        decisions = {
            name: look.decide(None) for name, look in looks.items() if look.need is Need.NOTHING
        }
        if not _kept(decisions):
            self._left_out(_verdicts(decisions), take)
            return
        waiting = {name: look for name, look in looks.items() if look.need is not Need.NOTHING}
        snapshot = Snapshot(self.optimizer) if waiting else None
        take()
        decisions |= {name: look.decide(snapshot) for name, look in waiting.items()}
        if snapshot is not None and not _kept(decisions):
            snapshot.restore()
            self._left_out(_verdicts(decisions), take)
            return
        corrected = {name: one.correction for name, one in decisions.items() if one.correction}
        for name, correction in corrected.items():
            velocity.carry_on(self.optimizer, looks[name].correct(correction))
        if corrected:
            self._remembered.note_correction()
        self._note(_verdicts(decisions))

    def _left_out(self, verdicts: dict[str, Verdict], take: Take) -> None:
        """The step was not made: the velocity's fate, and the end of a stall.

        Where something is not finite, the velocity stays as it was.
        """
        finite = all(verdict.reason is not Reason.NOT_FINITE for verdict in verdicts.values())
        if finite:
            velocity.leave_out(self.optimizer, self.sieve.on_skip)
        guard = StallGuard(self.sieve.stall_after, self._remembered.in_a_row)
        stalled = guard.stalled(kept=False)
        self._remembered.in_a_row = guard.in_a_row
        if stalled:
            self.counts["stalls"] += 1
            warnings.warn(
                f"the sieve has left out {self.sieve.stall_after} steps in a row "
                f"(the last one: {self._overall(verdicts).reason}); it forgets the velocity"
                + (" and takes this step plainly" if finite else ""),
                stacklevel=6,
            )
            velocity.leave_out(self.optimizer, "reset")
            if finite:
                take()
                verdicts = {
                    name: verdict.because(Reason.STALL_BROKEN, True)
                    for name, verdict in verdicts.items()
                }
        self._note(verdicts)

    def _note(self, verdicts: dict[str, Verdict]) -> None:
        self.verdicts = verdicts
        self.last = self._overall(verdicts)
        if self.last.keep:
            self._remembered.in_a_row = 0
        self.counts["kept" if self.last.keep else "skipped"] += 1
        name = self.last.reason.name
        self.reasons[name] = self.reasons.get(name, 0) + 1

    def _overall(self, verdicts: dict[str, Verdict]) -> Verdict:
        """A step is kept if every module keeps it; of the verdicts the furthest out of range."""
        refused = [verdict for verdict in verdicts.values() if not verdict.keep]
        return max(refused or verdicts.values(), key=lambda verdict: self._distance(verdict.Q))

    def _distance(self, Q: float) -> float:
        lowest, highest = self.policy.q_range
        return -math.inf if math.isnan(Q) else max(lowest - Q, Q - highest)

    def _say_unjudged(self, looks: dict[str, Look]) -> None:
        self.unjudged = {}
        for name, look in looks.items():
            why = look.measured.unjudged
            if why is None:
                continue
            self.unjudged[name] = why
            self.counts["unjudged"] += 1
            if why not in self._warned:
                self._warned.add(why)
                label = look.measured.stack.label
                warnings.warn(f"steps of {label} are kept but not judged: {why}", stacklevel=6)

    @property
    def _together(self) -> bool:
        distributed = torch.distributed
        if self.synchronise is False or not distributed.is_available():
            return False
        return distributed.is_initialized() and distributed.get_world_size() > 1

    def _check_model(self) -> None:
        """The recurrent modules and their parameters must be those that the sieve was made for."""
        modules = list(self.model.named_modules())
        if modules != self._modules:
            self._modules = modules
            if _named(find_stacks(self.model)) != _named(self.stacks):
                raise GradsieveError(
                    "the recurrent modules of the model are not those it had when the sieve was "
                    "made; make a new gst.Sieve after changing a model"
                )
        check_held(self.stacks, self.optimizer)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's, and the sieve's own under "gradsieve"."""
        own = {**self._remembered.saved(), "gradients": self._successive.saved()}
        if self.clip is not None:
            own["clip"] = self.clip.state_dict()
        return {**self.optimizer.state_dict(), "gradsieve": own}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state of this class, or of the wrapped optimizer's own."""
        saved = state_dict.get("gradsieve", {})
        own, clip = Remembered.loaded(saved), copy.deepcopy(self.clip)
        successive = Successive.loaded(saved.get("gradients", {}))
        if clip is not None and "clip" in saved:
            clip.load_state_dict(saved["clip"])
        self.optimizer.load_state_dict({k: v for k, v in state_dict.items() if k != "gradsieve"})
        self._remembered, self._successive, self.clip = own, successive, clip
        self.recorder.forget()
        self.recorder.listening = own.looks_in <= 1

    def close(self) -> None:
        """Stop recording. The wrapped optimizer can be used on."""
        self.recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse_copy()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse_copy()

    def _refuse_copy(self) -> NoReturn:
        raise GradsieveError(
            "a gst.Sieve cannot be copied or pickled, because it is tied to one model; make one "
            "for the copied model and give it state_dict() by load_state_dict()"
        )

    @property
    def corrections(self) -> core.Corrections:
        """What was done to the steps, e.g. "corrected 29 % of updates between 2,000 and 9,000"."""
        return self._remembered.corrections()

    def __repr__(self) -> str:
        done = f"after {self.counts['steps']:,} steps: {self.corrections}"
        return f"Sieve({self.optimizer!r}, {self.sieve}; {done})"


def _settings(policy: PolicyName | core.Sieve, settings: dict[str, Any]) -> core.Sieve:
    if isinstance(policy, core.Sieve):
        settings = {**policy.as_dict(), **settings}
    else:
        settings = {"policy": policy, **settings}
    found = core.Sieve.from_dict(settings)
    if found.policy == "select":
        raise InvalidArgument(
            "policy is 'select'; around a PyTorch optimizer it may be 'auto', 'hold', 'steer' or "
            "'skip', because step() sees the minibatch's gradient and not each example's"
        )
    return found


def _kept(decisions: dict[str, Decision]) -> bool:
    return all(decision.verdict.keep for decision in decisions.values())


def _verdicts(decisions: dict[str, Decision]) -> dict[str, Verdict]:
    return {name: decision.verdict for name, decision in decisions.items()}


def _named(stacks: list[Stack]) -> list[tuple[str, nn.Module]]:
    return [(stack.name, stack.module) for stack in stacks]
