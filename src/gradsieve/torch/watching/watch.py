"""`gst.watch`: only looks. How far back the gradient goes in every recurrent layer, and why.

It records the model's calls as the sieve does, on a schedule that bounds its cost, and changes
nothing. Readings are a flat dict of numbers for any logger; `sinks` get each of them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from statistics import fmean
from typing import Self

import torch
from torch import Tensor, nn

from gradsieve.change import WINDOW
from gradsieve.errors import GradsieveError, InvalidArgument
from gradsieve.judgement import Judgement, LayerReading, judge
from gradsieve.sieve import Sieve
from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.recursion import Deltas
from gradsieve.torch.evidence.slow import slow_sum
from gradsieve.torch.evidence.transport import Transport, own_direction
from gradsieve.torch.modules.record import Chain, Recorder
from gradsieve.torch.modules.sequences import sequences
from gradsieve.torch.modules.stack import Place, Stack, StackWeights, find_stacks
from gradsieve.torch.watching.lags import norms_by_lag, reach
from gradsieve.torch.watching.saturation import saturated_share

Sink = Callable[[int, Mapping[str, float]], None]


class Watch:
    """What `watch` returns: call `read()` after `loss.backward()`.

    Attributes:
        last: the last reading, a flat dict.
        curves: by layer, log10 of the mean gradient norm at lag 0, 1, 2 …
    """

    def __init__(
        self,
        model: nn.Module,
        every: int = 1,
        q_range: tuple[float, float] | None = None,
        sinks: Iterable[Sink] = (),
        constant_loss: float | None = None,
        memory: int = 20,
    ) -> None:
        if every < 1:
            raise InvalidArgument(f"every is {every}; it must be at least 1")
        self.every = every
        self.q_range = Sieve().range if q_range is None else q_range
        self.sinks = list(sinks)
        self.constant_loss = constant_loss
        self.stacks = find_stacks(model)
        self.recorder = Recorder(self.stacks)
        self.step = 0
        self.last: dict[str, float] = {}
        self.curves: dict[str, list[float]] = {}
        self.layers: list[LayerReading] = []
        self._losses: deque[float] = deque(maxlen=memory)
        self._weights: dict[Stack, StackWeights] = {}

    def read(self, loss: float | Tensor | None = None) -> dict[str, float]:
        """A reading, on schedule; {} between. Needs a backward pass since the last one."""
        due = self.step % self.every == 0
        self.step += 1
        if loss is not None:
            self._losses.append(float(loss.detach() if isinstance(loss, Tensor) else loss))
        if due:
            self._look()
            for sink in self.sinks:
                sink(self.step - 1, self.last)
        self.recorder.forget()
        self.recorder.listening = self.step % self.every == 0
        return dict(self.last) if due else {}

    def _look(self) -> None:
        finished = self.recorder.finished()
        if not finished:
            raise GradsieveError(
                "no gradient has come back to a recurrent module since the last reading; call "
                "loss.backward() before read()"
            )
        self.last, self.layers = {}, []
        if self._losses:
            self.last["loss"] = self._losses[-1]
        with torch.no_grad():
            for stack, chains in finished.items():
                self._look_at(stack, chains[-1])

    def _look_at(self, stack: Stack, chain: Chain) -> None:
        weights = stack.fixed_weights()
        like = weights[Place(0, 0)]["weight_hh"]
        transport = Transport(stack, weights, sequences(stack, chain, like))
        for carrier in transport.carriers:
            if int(carrier.last.max()) < 1:
                continue  # its gradient enters at the first step: there is no lag to look at
            deltas = transport.deltas(carrier)
            for index, own in enumerate(own_direction(carrier, deltas)):
                place = Place(index, carrier.direction)
                name = _name(stack, place)
                logs = norms_by_lag(carrier, own)
                longest = len(logs) - 1

                def slow_Q(lag: int | None, carrier: Carrier = carrier, own: Deltas = own) -> float:
                    return slow_sum(carrier, [own], lag, WINDOW).Q

                seen = LayerReading(
                    slow_Q(None),
                    reach(slow_Q, longest, self.q_range[1]),
                    longest,
                    saturated_share(transport.layers[place].run),
                    name,
                )
                self.layers.append(seen)
                self.curves[name] = logs
                self.last[f"{name}/Q"] = logs[0] - logs[-1] if math.isfinite(logs[0]) else math.nan
                self.last[f"{name}/slow_Q"] = seen.slow_Q
                self.last[f"{name}/reach"] = float(seen.reach)
                for gate, share in seen.saturated.items():
                    self.last[f"{name}/saturated/{gate}"] = share
                for gate, share in self._shares(stack, weights, place).items():
                    self.last[f"{name}/share/{gate}"] = share
        self._weights[stack] = weights

    def _shares(self, stack: Stack, weights: StackWeights, place: Place) -> dict[str, float]:
        """By gate: its part in the square of how far the weights moved since the last reading."""
        if stack not in self._weights:
            return {}
        now, then = weights[place], self._weights[stack][place]
        squares = torch.zeros(len(stack.cell.gates), dtype=torch.float64)
        for name in ("weight_ih", "weight_hh"):
            moved = (now[name] - then[name]).double().reshape(len(stack.cell.gates), -1)
            squares += moved.square().sum(1).cpu()
        total = float(squares.sum())
        if total == 0:
            return {}
        return {g: float(s) / total for g, s in zip(stack.cell.gates, squares, strict=True)}

    def diagnosis(self) -> Judgement:
        """Symptoms, evidence and what to try next, from the last reading and the losses given."""
        if not self.layers:
            raise GradsieveError("nothing was read yet; call read() after loss.backward()")
        loss = fmean(self._losses) if self._losses else None
        return judge(self.layers, self.q_range, loss, self.constant_loss)

    def close(self) -> None:
        """Stop recording. So does dropping the watch, or the end of a `with` block."""
        self.recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def watch(
    model: nn.Module,
    every: int = 1,
    q_range: tuple[float, float] | None = None,
    sinks: Iterable[Sink] = (),
    constant_loss: float | None = None,
    memory: int = 20,
) -> Watch:
    """Look at how far the gradient goes back in a model's recurrent layers.

    >>> import torch
    >>> model = torch.nn.GRU(2, 8)
    >>> look = watch(model)
    >>> model(torch.randn(30, 4, 2))[0][-1].square().mean().backward()
    >>> sorted(look.read())[:2]
    ['GRU/layer0/Q', 'GRU/layer0/reach']

    Args:
        model: where to look for recurrent modules.
        every: one reading in so many calls of `read()`; between them nothing is recorded.
        q_range: the range of slow Q inside which a gradient is said to reach; by default that of
            the sieve's own policy.
        sinks: called with the step and the reading; see `TensorBoardSink` and `CSVSink`.
        constant_loss: the loss of a constant guess (`gst.constant_loss(targets)`), so that a model
            that has learned nothing can be told.
        memory: over how many given losses that is judged.
    """
    return Watch(model, every, q_range, sinks, constant_loss, memory)


def _name(stack: Stack, place: Place) -> str:
    return f"{stack.label}/layer{place.layer}" + ("_reverse" if place.direction else "")
