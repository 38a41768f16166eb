"""All calls of one recurrent module since the last step, measured as one minibatch.

Q needs only the step's own gradient. dS needs the update and costs more: `predict` finds it where a
policy asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from gradsieve.change import NormChange, difference, summarise
from gradsieve.flow import Norms
from gradsieve.sieve import Policy
from gradsieve.torch.evidence import ends
from gradsieve.torch.evidence.change import change_deltas
from gradsieve.torch.evidence.processes import over_processes
from gradsieve.torch.evidence.slow import SlowSum, slow_sum
from gradsieve.torch.evidence.transport import Carried, Transport, carry
from gradsieve.torch.memory import Memory
from gradsieve.torch.modules.record import Chain
from gradsieve.torch.modules.sequences import TimeFirst, sequences
from gradsieve.torch.modules.stack import Place, Stack, StackWeights

TOO_SHORT = "no sequence is longer than the horizon"
NO_GRADIENT = "no gradient arrives at the recurrent products"
CHANGED = "inputs or initial states were changed in place after the call"
DROPOUT = "the dropout between its layers cannot be drawn again on this device"


@dataclass(frozen=True)
class Measured:
    """One module's calls since the last step, and what was measured of them."""

    stack: Stack
    weights: StackWeights  # as they were before the update
    transports: list[Transport]
    carried: list[Carried]
    norms: Norms
    count: int  # of examples, over all processes
    slow: SlowSum | None  # where the policy measures by slow Q
    left_out: str | None  # why calls were left out, where some were

    @property
    def Q(self) -> float:
        """Q as the policy measures it."""
        return summarise(self.norms).Q if self.slow is None else self.slow.Q

    @property
    def unjudged(self) -> str | None:
        """Why there can be no verdict, or None."""
        if self.count == 0:
            return self.left_out or (TOO_SHORT if self.carried else NO_GRADIENT)
        return NO_GRADIENT if self.norms.near_norm == 0 else None


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
        weights = stack.fixed_weights()
        like = weights[Place(0, 0)]["weight_hh"]
        given = [sequences(stack, chain, like) for chain in valid]
        every, carried = _carried(stack, weights, given, memory)
        transports = [transport for transport in every if transport.follows]
        carried = [one for one in carried if one.transport.follows]
        found = _ends(stack, carried, sieve.horizon)
        slow = None
        if policy.measure == "slow Q":
            slow = sum(
                (slow_sum(one.carrier, one.own, sieve.horizon, sieve.window) for one in carried),
                start=SlowSum(),
            )
            slow = slow.over_processes() if together else slow
        count = torch.tensor(found.count)
        if together:
            count = over_processes(count)
        return Measured(
            stack,
            weights,
            transports,
            carried,
            ends.norms(found, together),
            int(count),
            slow,
            _left_out(len(valid) < len(chains), len(transports) < len(every)),
        )


def _left_out(changed: bool, dropped: bool) -> str | None:
    """Why calls were left out."""
    return CHANGED if changed else DROPOUT if dropped else None


def predict(measured: Measured, policy: Policy, together: bool) -> NormChange:
    """S, dS, Q and dQ along the change that the optimizer's step has made to the weights."""
    sieve, stack = policy.sieve, measured.stack
    with torch.no_grad():
        now = stack.fixed_weights()
        if sieve.estimator == "measured":
            given = [replace(one.sequences, outputs=None) for one in measured.transports]
            after = _ends(stack, _carried(stack, now, given, None)[1], sieve.horizon)
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
    stack: Stack, weights: StackWeights, given: list[TimeFirst], memory: Memory | None
) -> tuple[list[Transport], list[Carried]]:
    transports = [Transport(stack, weights, one, memory) for one in given]
    return transports, [
        carry(transport, carrier) for transport in transports for carrier in transport.carriers
    ]


def _ends(
    stack: Stack, carried: list[Carried], horizon: int | None, moved: bool = False
) -> ends.Ends:
    parts = [
        ends.ends(one.carrier, one.own, one.changed if moved else None, horizon) for one in carried
    ]
    return ends.joined([ends.no_ends(stack.layers), *parts])
