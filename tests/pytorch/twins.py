"""One network twice: as the core's SRN with its Stepper, and as nn.RNN with a linear head."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import gradsieve as gs
import gradsieve.torch as gst
from gradsieve.recipe import Recipe
from gradsieve.training.step import Extension, Stepper

INPUTS, HIDDEN = 2, 6


class Twins:
    """The head does not learn in either: around a PyTorch optimizer it is not known.

    Minibatches have one example. Then the size of its error, which the core differentiates and
    PyTorch's side holds, cancels in Q.
    """

    def __init__(
        self, sieve: gs.Sieve, rate: float, momentum: float = 0.0, variance: float = 0.05
    ) -> None:
        self.net = gs.SRN.random(
            INPUTS, HIDDEN, 1, "linear", variance=variance, seed=3, dtype=np.float64
        )
        recipe = Recipe(sieve=sieve).replaced(learning_rate=rate, momentum=momentum, clip=None)
        self.stepper = Stepper(self.net, recipe, "reference", Extension(penalty=_no_head))
        self.module, self.head = nn.RNN(INPUTS, HIDDEN), nn.Linear(HIDDEN, 1)
        self.module.bias_hh_l0.requires_grad_(False).zero_()
        with torch.no_grad():
            for theirs, mine in zip(self._parameters(), self._arrays(), strict=True):
                theirs.copy_(torch.from_numpy(mine))
            self.head.weight.copy_(torch.from_numpy(self.net.w_out.T))
            self.head.bias.copy_(torch.from_numpy(self.net.b_out))
        inner = torch.optim.SGD(self._parameters(), lr=rate, momentum=momentum)
        self.optimizer = gst.Sieve(self.module, inner, sieve)

    def _parameters(self) -> list[nn.Parameter]:
        return [self.module.weight_ih_l0, self.module.weight_hh_l0, self.module.bias_ih_l0]

    def _arrays(self) -> list[np.ndarray]:
        return [self.net.w_in.T, self.net.w_rec.T, self.net.b]

    def step(self, u: np.ndarray, t: np.ndarray) -> tuple[gs.Verdict, gs.Verdict]:
        """One minibatch through both; the verdicts."""
        outcome = self.stepper.step(u, t, None)
        self.optimizer.zero_grad()
        error = self.head(self.module(torch.from_numpy(u))[0][-1]) - torch.from_numpy(t)
        (0.5 * error.square().sum()).backward()
        self.optimizer.step()
        return outcome.verdict, self.optimizer.last

    def assert_same_weights(self, rtol: float = 1e-7) -> None:
        for theirs, mine in zip(self._parameters(), self._arrays(), strict=True):
            np.testing.assert_allclose(theirs.detach().numpy(), mine, rtol=rtol, atol=1e-10)


def _no_head(flow: gs.Flow) -> np.ndarray:
    """What takes the head's gradient away."""
    penalty = flow.net.like(np.zeros_like(flow.net.flat))
    penalty.w_out[:], penalty.b_out[:] = -flow.gradient.w_out, -flow.gradient.b_out
    return penalty.flat
