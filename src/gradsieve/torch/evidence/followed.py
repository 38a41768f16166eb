"""A call of one of our own layers on the way back that it went itself, without a second one.

Where a gradient came to one step of each sequence only, the deltas that the layer's backward pass
has written are those that a carrier would have. All else that a `Carried` may be asked for is
computed when it is.
"""

from __future__ import annotations

from functools import cached_property
from typing import cast

import torch

from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.kernel_layer import FollowedLayer
from gradsieve.torch.evidence.transport import Carried, Transport
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.record import Chain
from gradsieve.torch.modules.sequences import TimeFirst, passes_of, sequences
from gradsieve.torch.modules.stack import Place, Stack, StackWeights

ONLY = Place(0, 0)


class _Later:
    """What a Transport is made of, made where first asked for."""

    def __init__(self, stack: Stack, chain: Chain, memory: Memory | None) -> None:
        self._given = stack, chain, memory

    follows = True  # there is no dropout within one layer

    @cached_property
    def _transport(self) -> Transport:
        stack, chain, memory = self._given
        weights: StackWeights = stack.fixed_weights()
        like = weights[ONLY]["weight_hh"]
        return Transport(stack, weights, sequences(stack, chain, like), memory)

    @property
    def stack(self) -> Stack:
        return self._given[0]

    @property
    def sequences(self) -> TimeFirst:
        return self._transport.sequences

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


def followed(stack: Stack, chain: Chain, memory: Memory | None) -> Carried | None:
    """The call with its deltas; None where they are not known, or not those of a carrier."""
    call = chain[0].followed
    if call is None or not call.alone:
        return None
    passes = passes_of(stack, chain)
    if passes is None:
        return None
    layer = FollowedLayer(passes, call.native)
    carrier = Carrier(0, torch.from_numpy(call.native.last), [], passes.u.shape[0])
    transport = cast("Transport", _Later(stack, chain, memory))
    return Carried(transport, carrier, {ONLY: layer})
