"""All calls of one recurrent module since the last step, measured as one minibatch.

Q needs only the step's own gradient. dS needs the update and costs more: `predict` finds it where a
policy asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from gradsieve.change import NormChange, difference, summarise
from gradsieve.flow import Norms
from gradsieve.sieve import Policy
from gradsieve.torch.evidence import ends
from gradsieve.torch.evidence.change import change_deltas
from gradsieve.torch.evidence.followed import followed
from gradsieve.torch.evidence.kernel_layer import FollowedLayer
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.evidence.slow import SlowSum, slow_sum
from gradsieve.torch.evidence.transport import Carried, Transport, carry
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.record import Chain
from gradsieve.torch.modules.sequences import sequences
from gradsieve.torch.modules.stack import Place, Stack, StackWeights

TOO_SHORT = "no sequence is longer than the horizon"
NO_GRADIENT = "no gradient arrives at the recurrent products"
CHANGED = "inputs or initial states were changed in place after the call"
DROPOUT = "the dropout between its layers cannot be drawn again on this device"


@dataclass(frozen=True)
class Measured:
    """One module's calls since the last step, and what was measured of them."""

    stack: Stack
    transports: list[Transport]
    carried: list[Carried]
    horizon: int | None
    together: bool  # whether this is over all processes of torch.distributed
    slow: SlowSum | None  # where the policy measures by slow Q
    left_out: str | None  # why calls were left out, where some were

    @cached_property
    def _ends(self) -> ends.Ends:
        return _ends(self.stack, self.carried, self.horizon)

    @cached_property
    def norms(self) -> Norms:
        """Of Eq. 14's two ends."""
        return ends.norms(self._ends, self.together)

    @cached_property
    def count(self) -> int:
        """Of examples, over all processes."""
        if self.slow is not None:
            return self.slow.examples
        count = torch.tensor(self._ends.count)
        if self.together:
            count = over_processes(count)
        return int(count)

    @cached_property
    def weights(self) -> StackWeights:
        """Copies in float32 or float64; made where first asked for."""
        with torch.no_grad():
            return self.stack.fixed_weights()

    def hold(self) -> None:
        """Keep what a step is about to change."""
        _ = self.weights
        for one in self.carried:
            for layer in one.layers.values():
                if isinstance(layer, FollowedLayer):
                    layer.fetch()

    @property
    def Q(self) -> float:
        """Q as the policy measures it."""
        return summarise(self.norms).Q if self.slow is None else self.slow.Q

    @property
    def unjudged(self) -> str | None:
        """Why there can be no verdict, or None."""
        if self.count == 0:
            return self.left_out or (TOO_SHORT if self.carried else NO_GRADIENT)
        near = self.norms.near_norm if self.slow is None else self.slow.near
        return NO_GRADIENT if near == 0 else None


def gather(
    stack: Stack,
    chains: list[Chain],
    policy: Policy,
    together: bool,
    memory: Memory | None = None,
) -> Measured:
    """Carry each chain's last gradient back and measure it, over all processes if `together`."""
    valid = [chain for chain in chains if not any(call.given_changed for call in chain)]
    sieve = policy.sieve
    with torch.no_grad():
        transports, carried = _carried(stack, valid, memory)
        slow = None
        if policy.measure == "slow Q":
            slow = sum(
                (slow_sum(one.carrier, one.own, sieve.horizon, sieve.window) for one in carried),
                start=SlowSum(),
            )
            slow = slow.over_processes() if together else slow
        left_out = _left_out(len(valid) < len(chains), len(transports) < len(valid))
        return Measured(stack, transports, carried, sieve.horizon, together, slow, left_out)


def _left_out(changed: bool, dropped: bool) -> str | None:
    """Why calls were left out."""
    return CHANGED if changed else DROPOUT if dropped else None


def predict(measured: Measured, policy: Policy, together: bool) -> NormChange:
    """S, dS, Q and dQ along the change that the optimizer's step has made to the weights."""
    sieve, stack = policy.sieve, measured.stack
    with torch.no_grad():
        now = stack.fixed_weights()
        if sieve.estimator == "measured":
            after = _ends(stack, _carried_again(measured, now), sieve.horizon)
            return difference(measured.norms, ends.norms(after, together))
        update = {
            place: {name: weight - measured.weights[place][name] for name, weight in own.items()}
            for place, own in now.items()
        }
        for one in measured.carried:
            change_deltas(one, update, sieve.estimator == "frozen")
        found = _ends(stack, measured.carried, sieve.horizon, moved=True)
        return summarise(ends.norms(found, together))


def _carried(
    stack: Stack, chains: list[Chain], memory: Memory | None
) -> tuple[list[Transport], list[Carried]]:
    """Every chain gone forward and back, or followed on the way that it went itself.

    A chain whose outputs cannot be come to again is left out.
    """
    transports: list[Transport] = []
    carried: list[Carried] = []
    weights: StackWeights = {}
    for chain in chains:
        one = followed(stack, chain, memory)
        if one is not None:
            transports.append(one.transport)
            carried.append(one)
            continue
        weights = weights or stack.fixed_weights()
        like = weights[Place(0, 0)]["weight_hh"]
        transport = Transport(stack, weights, sequences(stack, chain, like), memory)
        if transport.follows:
            transports.append(transport)
            carried += [carry(transport, carrier) for carrier in transport.carriers]
    return transports, carried


def _carried_again(measured: Measured, weights: StackWeights) -> list[Carried]:
    """The same calls with other weights."""
    given = [replace(one.sequences, outputs=None, passes=None) for one in measured.transports]
    transports = [Transport(measured.stack, weights, one) for one in given]
    return [carry(one, carrier) for one in transports for carrier in one.carriers]


def _ends(
    stack: Stack, carried: list[Carried], horizon: int | None, moved: bool = False
) -> ends.Ends:
    parts = [
        ends.ends(one.carrier, one.own, one.changed if moved else None, horizon) for one in carried
    ]
    return ends.joined([ends.no_ends(stack.layers), *parts])
