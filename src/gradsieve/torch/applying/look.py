"""One recurrent module at one step: the evidence as it comes together before and after the step."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gradsieve.sieve import Decision, Evidence, Need, Policy, Reason, Slope, Verdict
from gradsieve.torch.applying.snapshot import Snapshot
from gradsieve.torch.applying.velocity import fresh_length
from gradsieve.torch.evidence.gather import Measured, predict
from gradsieve.torch.evidence.slope import q_gradient
from gradsieve.torch.measures import products


class Look:
    """Gathers what a policy asks for. The slope of Q is that at the weights before the step."""

    def __init__(self, measured: Measured, policy: Policy, first: Evidence, together: bool) -> None:
        self.measured = measured
        self.policy = policy
        self.together = together
        self.evidence = first
        self.need = Need.NOTHING
        self.gradient: list[Tensor] = []  # ∂Q/∂(parameter)
        if measured.unjudged is not None:
            return
        if first.learning is not None:
            first.learning.note_range(policy.wanted(first.Q) == 0)
        self.need = policy.need(self.evidence)
        if self.need is Need.CHANGE:
            measured.hold()
        if self.need is Need.SLOPE:
            self.gradient = q_gradient(measured, policy, together)

    def decide(self, snapshot: Snapshot | None) -> Decision:
        """The policy's decision; after the step, if anything beside Q is needed for it."""
        if self.measured.unjudged is not None:
            return Decision(Verdict(True, Reason.NOT_JUDGED))
        if self.need is Need.CHANGE:
            change = predict(self.measured, self.policy, self.together)
            self.evidence = replace(self.evidence, change=change)
        if self.need is Need.SLOPE and snapshot is not None:
            self.evidence = replace(self.evidence, slope=self._slope(snapshot))
        return self.policy.decide(self.evidence)

    @torch.no_grad()
    def _slope(self, snapshot: Snapshot) -> Slope:
        along = square = 0.0
        steps: dict[Tensor, Tensor] = {}
        for parameter, gradient in zip(self._parameters, self.gradient, strict=True):
            steps[parameter] = parameter - snapshot.before(parameter)
            both, own = products(gradient, steps[parameter])
            along, square = along + both, square + own
        return Slope(along, square, fresh_length(snapshot.optimizer, steps))

    @property
    def _parameters(self) -> list[torch.nn.Parameter]:
        return self.measured.stack.parameters()

    @torch.no_grad()
    def correct(self, factor: float) -> dict[Tensor, Tensor]:
        """Add factor · ∂Q/∂w to the parameters; the corrections by parameter."""
        corrections: dict[Tensor, Tensor] = {}
        for parameter, gradient in zip(self._parameters, self.gradient, strict=True):
            corrections[parameter] = (factor * gradient).to(parameter.dtype)
            parameter.add_(corrections[parameter])
        return corrections
