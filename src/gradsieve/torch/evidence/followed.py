"""A call of one of our own layers on the way back that it went itself, without a second one.

Where a gradient came to one step of each sequence only, the deltas that the layer's backward pass
has written are those that a carrier would have. All else is made when it is asked for.
"""

from __future__ import annotations

import torch

from gradsieve.torch.evidence.carrier import Carrier
from gradsieve.torch.evidence.kernel_layer import FollowedLayer
from gradsieve.torch.evidence.transport import Carried, Transport
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.record import Chain
from gradsieve.torch.modules.sequences import TimeFirst, passes_of, sequences
from gradsieve.torch.modules.stack import Place, Stack, StackWeights

ONLY = Place(0, 0)


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

    def make() -> tuple[StackWeights, TimeFirst]:
        weights = stack.fixed_weights()
        return weights, sequences(stack, chain, weights[ONLY]["weight_hh"])

    transport = Transport.later(stack, make, memory)
    return Carried(transport, carrier, {ONLY: layer})
