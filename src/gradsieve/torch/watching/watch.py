"""`gst.watch`: only looks. How far back the gradient goes in every recurrent layer, and why.

It records the model's calls as the sieve does, on a schedule that bounds its cost, and changes
nothing. A monitor must not end a training: an error in a sink, or a step without a gradient, is
warned about once.
"""

from __future__ import annotations

import math
import warnings
from collections import deque
from collections.abc import Iterable
from typing import NoReturn, Self

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from gradsieve import sieve as core
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.judgement import Judgement, judge
from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.modules.record import Chain, Recorder
from gradsieve.torch.modules.stack import Stack, StackWeights, find_stacks
from gradsieve.torch.watching.gradients import GradientNorms
from gradsieve.torch.watching.layers import look_at
from gradsieve.torch.watching.reading import LayerLook, Reading
from gradsieve.torch.watching.sinks import Sink

EVERY = 300  # a look costs at most five training steps: under 2 % of the time
MEMORY = 20  # losses over which a model is compared with a constant guess


class Watch:
    """Looks at how far the gradient goes back in a model's recurrent layers.

    Call `read()` after `loss.backward()`.

    >>> import torch
    >>> model = torch.nn.GRU(2, 8)
    >>> look = watch(model)
    >>> model(torch.randn(30, 4, 2))[0][-1].square().mean().backward()
    >>> sorted(look.read())[:3]
    ['GRU/layer0/Q', 'GRU/layer0/gradient/lag_1', 'GRU/layer0/gradient/lag_10']

    Args:
        model: where to look for recurrent modules.
        optimizer: its learning rate is read and, of a `gst.Sieve`, the counts of its steps.
        every: one reading in this many calls of `read()`; between them nothing is recorded.
        sinks: called with the step and the reading; see `ToCSV`, `ToTensorBoard`, `ToWandb`,
            `ToRunFolder`.
        clip: your clipping threshold, for readings of how often and how much it shortens gradients.
        constant_loss: the loss of a constant guess (`gst.constant_loss(targets)`), by which a model
            that has learned nothing is recognised.
        q_range: the safe range of slow Q; by default that of the optimizer's sieve, or of the
            default policy.

    Attributes:
        last: the last reading.
        step: how many times `read()` was called.
        norms: of the gradients since the last reading.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | None = None,
        *,
        every: int = EVERY,
        sinks: Iterable[Sink] = (),
        clip: float | None = None,
        constant_loss: float | None = None,
        q_range: tuple[float, float] | None = None,
    ) -> None:
        if not (isinstance(every, int) and every >= 1):
            raise InvalidArgument(f"every is {every}; it must be a whole number from 1")
        if clip is not None and not clip > 0:
            raise InvalidArgument(f"clip is {clip}; it must be above 0, or None")
        self.model = model
        self.optimizer = optimizer
        self.every = every
        self.sinks = list(sinks)
        self.constant_loss = constant_loss
        self.q_range = _slow_range(optimizer) if q_range is None else q_range
        self.stacks = find_stacks(model)
        self.recorder = Recorder(self.stacks)
        self.step = 0
        self.last: Reading | None = None
        self._due = True
        self.norms = GradientNorms(clip)
        self._losses: deque[float] = deque(maxlen=MEMORY)
        self._weights: dict[Stack, StackWeights] = {}
        self._warned: set[str] = set()

    def read(
        self,
        loss: float | Tensor | None = None,
        gradient_norm: float | Tensor | None = None,
        **more: float,
    ) -> dict[str, float]:
        """A reading, on schedule; {} between. Call it between `backward()` and clipping.

        Args:
            loss: of this step.
            gradient_norm: of this step before clipping, as `clip_grad_norm_` returns it. Where it
                is given, every step is counted, and `read()` may come after clipping; otherwise
                the norm is computed at looks.
            more: numbers that go into the reading as they are, such as accuracy=0.9.
        """
        self.step += 1
        if gradient_norm is not None:
            self.norms.note(gradient_norm)
        due = self._due
        found = self._look(loss, more) if due else None
        missed = due and found is None
        self._due = missed or self.step % self.every == 0
        self.recorder.forget()
        self.recorder.listening = self._due
        if found is None:
            return {}
        self.last = found
        for sink in self.sinks:
            self._pass_on(sink, found)
        return dict(found)

    def _look(self, loss: float | Tensor | None, more: dict[str, float]) -> Reading | None:
        finished = self.recorder.finished()
        if not finished and self.last is None:
            raise GradsieveError(
                "no gradient has come back to a recurrent module; call the model with gradients "
                "enabled and loss.backward() before read()"
            )
        looks: list[LayerLook] = []
        for stack, chains in finished.items():
            chain = self._chain(stack, chains)
            if chain is not None:
                looks += self._look_at(stack, chain)
        if not looks:
            return None
        if loss is not None:
            self._losses.append(float(loss.detach() if isinstance(loss, Tensor) else loss))
        judgement = self._judged(looks)
        values = {"loss": self._losses[-1]} if loss is not None else {}
        self.norms.compute(self.model.parameters())
        if isinstance(self.optimizer, Sieve) and self.optimizer.clip is not None:
            self.norms.clip = self.optimizer.clip.threshold
        values |= self.norms.values() | self._of_optimizer()
        for one in looks:
            values |= {f"{one.name}/{name}": value for name, value in one.values().items()}
        numbers = {name: float(value) for name, value in more.items()}
        return Reading(values | numbers, looks, judgement)

    @torch.no_grad()
    def _look_at(self, stack: Stack, chain: Chain) -> list[LayerLook]:
        weights = stack.fixed_weights()
        looks = look_at(stack, chain, weights, self._weights.get(stack), self.q_range[1])
        self._weights[stack] = weights
        return looks

    def _chain(self, stack: Stack, chains: list[Chain]) -> Chain | None:
        """The last calls whose inputs are unchanged."""
        for chain in reversed(chains):
            if not any(call.given_changed for call in chain):
                return chain
        self._warn(f"{stack.label} is not looked at: its inputs were changed in place")
        return None

    def _of_optimizer(self) -> dict[str, float]:
        """The learning rate and, of a sieve, the counts of its steps so far."""
        if self.optimizer is None:
            return {}
        rate = self.optimizer.param_groups[0].get("lr")
        found = {} if rate is None else {"learning_rate": float(rate)}
        if isinstance(self.optimizer, Sieve):
            steps = {name: float(count) for name, count in self.optimizer.counts.items()}
            reasons = {f"reason/{name}": float(n) for name, n in self.optimizer.reasons.items()}
            found |= {f"sieve/{name}": value for name, value in (steps | reasons).items()}
        return found

    def _judged(self, looks: list[LayerLook]) -> Judgement:
        losses = [loss for loss in self._losses if math.isfinite(loss)]
        mean = sum(losses) / len(losses) if losses else None
        corrected = isinstance(self.optimizer, Sieve) and self.optimizer.counts["corrected"] > 0
        layers = [one.seen for one in looks]
        return judge(layers, self.q_range, mean, self.constant_loss, corrected)

    def _pass_on(self, sink: Sink, reading: Reading) -> None:
        try:
            sink(self.step - 1, reading)
        except Exception as error:
            self._warn(f"a sink of gst.watch failed and readings may be missing: {error!r}")

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            warnings.warn(text, stacklevel=5)

    def diagnosis(self) -> Judgement:
        """In plain words, from the last reading and the losses given, with what to try next."""
        if self.last is None:
            raise GradsieveError("nothing was read yet; call read() after loss.backward()")
        return self.last.judgement

    @property
    def curves(self) -> dict[str, list[float]]:
        """By layer, log10 of the mean gradient norm at lag 0, 1, 2 …"""
        return {} if self.last is None else {one.name: one.curve for one in self.last.layers}

    def close(self) -> None:
        """Stop recording, and close the sinks that can be closed."""
        self.recorder.close()
        for sink in self.sinks:
            close = getattr(sink, "close", None)
            if close is not None:
                close()

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
            "a gst.Watch cannot be copied or pickled, because it listens to one model; make one "
            "for the copied model by gst.watch()"
        )


def _slow_range(optimizer: Optimizer | None) -> tuple[float, float]:
    """The range of slow Q: that of the sieve at work, or of the default policy."""
    if isinstance(optimizer, Sieve) and optimizer.policy.measure == "slow Q":
        return optimizer.policy.q_range
    return core.Sieve().range


watch = Watch
