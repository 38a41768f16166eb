"""The same step in PyTorch: `nn.RNN` and SGD, plain, and with dS written by hand on its states."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gradsieve.bench.timing import Step
from gradsieve.bench.workload import MOMENTUM, RATE, Workload


class _Model(nn.Module):
    def __init__(self, workload: Workload) -> None:
        super().__init__()
        net = workload.net
        self.rnn = nn.RNN(net.inputs, net.hidden)
        self.head = nn.Linear(net.hidden, net.outputs)
        weights = {
            "rnn.weight_ih_l0": net.w_in.T,
            "rnn.weight_hh_l0": net.w_rec.T,
            "rnn.bias_ih_l0": net.b,
            "rnn.bias_hh_l0": 0 * net.b,
            "head.weight": net.w_out.T,
            "head.bias": net.b_out,
        }
        self.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
        # PyTorch has two biases where one is enough; training both would double the update.
        dict(self.named_parameters())["rnn.bias_hh_l0"].requires_grad_(False)

    def forward(self, u: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.rnn(u)
        return states, self.head(states[-1])


def torch_steps(workload: Workload) -> dict[str, Step]:
    """Plain, frozen and full; all three train, none of them shares anything with the kernel."""
    torch.set_num_threads(1)
    return {
        "PyTorch plain": _step(workload, None),
        "PyTorch frozen": _step(workload, "frozen"),
        "PyTorch full": _step(workload, "full"),
    }


def _step(workload: Workload, estimator: str | None) -> Step:
    model = _Model(workload)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    loss_of = nn.CrossEntropyLoss(reduction="sum")
    u, t = torch.from_numpy(workload.u), torch.from_numpy(workload.t)

    def step() -> float | None:
        optimizer.zero_grad()
        states, y = model(u)
        loss_of(y, t).backward()
        relative = None
        if estimator is not None:
            with torch.no_grad():
                weights: list[Tensor] = list(model.parameters())
                changes = [_proposed(optimizer, weight) for weight in weights]
                found = _relative_change(weights, changes, u, states, y, t, estimator)
                relative = found.item()
        optimizer.step()
        return relative

    return step


def _proposed(optimizer: torch.optim.SGD, weight: Tensor) -> Tensor:
    """What the optimizer is about to add to a weight."""
    if weight.grad is None:
        return torch.zeros_like(weight)
    velocity = optimizer.state[weight].get("momentum_buffer")
    return -RATE * (weight.grad if velocity is None else MOMENTUM * velocity + weight.grad)


def _relative_change(
    weights: list[Tensor],
    changes: list[Tensor],
    u: Tensor,
    states: Tensor,
    y: Tensor,
    t: Tensor,
    estimator: str,
) -> Tensor:
    """dS/(2S) of the first step's delta, as in gradsieve.reference but without its scaling."""
    _, w_rec, _, _, w_out, _ = weights  # PyTorch's are the transposes of ours
    dw_in, dw_rec, db, db_too, dw_out, db_out = changes
    length = len(u)
    z = torch.cat([torch.zeros_like(states[:1]), states])
    slope = 1 - z[1:] ** 2
    probability = torch.softmax(y, dim=1)
    error = probability - nn.functional.one_hot(t, y.shape[1])
    delta = torch.empty_like(states)
    delta[-1] = (error @ w_out) * slope[-1]
    for n in range(length - 2, -1, -1):
        delta[n] = (delta[n + 1] @ w_rec) * slope[n]
    carried = delta[1:] @ dw_rec
    if estimator == "frozen":
        ddelta = torch.zeros_like(delta[0])
        for n in range(length - 2, -1, -1):
            ddelta = (ddelta @ w_rec + carried[n]) * slope[n]
    else:
        da = u @ dw_in.T + z[:-1] @ dw_rec.T + (db + db_too)
        dz = torch.zeros_like(z[0])
        for n in range(length):
            da[n] += dz @ w_rec.T
            dz = slope[n] * da[n]
        dy = dz @ w_out.T + z[-1] @ dw_out.T + db_out
        de = probability * (dy - (probability * dy).sum(dim=1, keepdim=True))
        bend = -2 * z[1:] * da * delta
        ddelta = (de @ w_out + error @ dw_out) * slope[-1] + bend[-1]
        for n in range(length - 2, -1, -1):
            ddelta = (ddelta @ w_rec + carried[n]) * slope[n] + bend[n]
    return (delta[0] * ddelta).sum() / (delta[0] ** 2).sum()
