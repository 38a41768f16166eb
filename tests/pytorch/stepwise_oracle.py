"""δ, S and Q by an independent way: PyTorch's own modules run one step and one example at a time.

Every step has a recurrent bias of its own, b(n) = b_hh. It is added to the recurrent product, so
that autograd's ∂L/∂b(n) *is* δ(n). Nothing of gradsieve is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call


@dataclass
class Oracle:
    """S and Q of `module` for γ given at the last step of each direction, and at last states."""

    module: nn.RNNBase
    u: Tensor  # (T,B,I)
    gamma: Tensor  # (B, directions·H), by the outputs at each direction's last step
    lengths: list[int]
    initial: tuple[Tensor, ...] | None = None  # parts (layers·directions,B,·)
    gamma_last: tuple[Tensor | None, ...] = ()  # by h_n, c_n: parts (layers·directions,B,·)
    horizon: int | None = None

    def at(self, weights: dict[str, Tensor]) -> tuple[float, float]:
        """S and Q with these weights."""
        near, far, square = 0.0, 0.0, 0.0
        for deltas in self.long_enough(weights):
            near += float(deltas[-1].norm())
            far += float(deltas[0].norm())
            square += 0.5 * float(deltas[0].square().sum())
        return square, math.log10(near / far)

    def slow_Q(self, weights: dict[str, Tensor], window: float) -> float:
        """Q of the slow gradient with these weights, by its definition, step by step."""
        logs = []
        for deltas in self.long_enough(weights):
            steps = max(1, int(window * len(deltas)))
            hann = [math.sin(math.pi * (n + 0.5) / steps) ** 2 for n in range(steps)]
            slow = sum(w * delta for w, delta in zip(hann, deltas, strict=False)) / sum(hann)
            logs.append(math.log10(float(deltas[-1].norm() / slow.norm())))
        return sum(logs) / len(logs)

    def long_enough(self, weights: dict[str, Tensor]) -> Iterator[list[Tensor]]:
        """δ(last−h) … δ(last), all layers side by side, of each example in each direction."""
        directions = 2 if self.module.bidirectional else 1
        for direction in range(directions):
            for example, length in enumerate(self.lengths):
                h = length - 1 if self.horizon is None else self.horizon
                if length - 1 >= h >= 1:
                    layers = self.deltas(weights, example, direction)
                    steps = [torch.cat(parts) for parts in zip(*layers, strict=True)]
                    yield steps[-1 - h :]

    def deltas(
        self, weights: dict[str, Tensor], example: int, direction: int
    ) -> list[list[Tensor]]:
        """δ(1) … δ(T) in the direction's own time, by layer, for the carrier of that direction."""
        module = self.module
        directions = 2 if module.bidirectional else 1
        u = self.u[: self.lengths[example], example]
        biases: list[list[list[Tensor]]] = []
        surrogate = torch.zeros(())
        for layer in range(module.num_layers):
            outputs, row = [], []
            for way in range(directions):
                index = layer * directions + way
                own = u.flip(0) if way else u
                state = self._initial(index, example)
                run, nodes, last = self._run(weights, layer, way, own, state)
                outputs.append(run.flip(0) if way else run)
                row.append(nodes)
                if way == direction:
                    for part, gamma in zip(last, self.gamma_last, strict=False):
                        if gamma is not None:
                            surrogate = surrogate + (part * gamma[index, example]).sum()
                    if layer == module.num_layers - 1:
                        width = run.shape[-1]
                        gamma = self.gamma[example, way * width : (way + 1) * width]
                        surrogate = surrogate + (run[-1] * gamma).sum()
            biases.append(row)
            u = torch.cat(outputs, dim=-1)
        nodes = [node for row in biases for node in row[direction]]
        found = torch.autograd.grad(surrogate, nodes, materialize_grads=True)
        steps = len(biases[0][direction])
        return [list(found[start : start + steps]) for start in range(0, len(found), steps)]

    def _initial(self, index: int, example: int) -> tuple[Tensor, ...] | None:
        if self.initial is None:
            return None
        return tuple(part[index, example].reshape(1, 1, -1) for part in self.initial)

    def _run(self, weights, layer, way, u, state):
        suffix = f"_l{layer}" + ("_reverse" if way else "")
        module = self.module
        sizes = {"proj_size": module.proj_size} if module.proj_size else {}
        if module.mode.startswith("RNN"):
            sizes["nonlinearity"] = module.nonlinearity
        single = type(module)(u.shape[-1], module.hidden_size, **sizes)
        own = {
            name: weights[name.replace("_l0", suffix)]
            for name, _ in single.named_parameters()
            if name.replace("_l0", suffix) in weights
        }
        rows = own["weight_hh_l0"].shape[0]
        own.setdefault("bias_ih_l0", torch.zeros(rows))
        bias = own.get("bias_hh_l0", torch.zeros(rows))
        if state is not None and len(state) == 1:
            state = state[0]
        outputs, nodes = [], []
        for step in u:
            node = bias.detach().clone().requires_grad_()
            nodes.append(node)
            arguments = (step.reshape(1, 1, -1),) + (() if state is None else (state,))
            out, state = functional_call(single, {**own, "bias_hh_l0": node}, arguments)
            outputs.append(out.reshape(-1))
        last = state if isinstance(state, tuple) else (state,)
        return torch.stack(outputs), nodes, tuple(part.reshape(-1) for part in last)
