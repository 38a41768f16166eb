"""Whether everything agrees on this machine: `python -m gradsieve.torch.selfcheck`.

Each measure is taken in float32 on every device there is, and on the CPU with and without the
compiled kernel. It is compared with the same in float64 on the CPU without the kernel, and that
with PyTorch's autograd, of which it is independent. The table shows the largest difference of each
row; the exit code is 1 where one is above its tolerance. It takes seconds.
"""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gradsieve.torch.applying.optimizer import Sieve
from gradsieve.torch.fast.modules import GRU, LSTM, RNN
from gradsieve.torch.kernel_bridge import without_kernel
from gradsieve.torch.modules.cells import drive, recur
from gradsieve.torch.modules.stack import Place, find_stacks

STEPS, BATCH, INPUTS, HIDDEN = 24, 4, 3, 8
MODULES: dict[str, Callable[[], nn.Module]] = {
    "nn.RNN": lambda: nn.RNN(INPUTS, HIDDEN),
    "nn.RNN, relu": lambda: nn.RNN(INPUTS, HIDDEN, nonlinearity="relu"),
    "nn.GRU": lambda: nn.GRU(INPUTS, HIDDEN),
    "nn.LSTM": lambda: nn.LSTM(INPUTS, HIDDEN),
    "nn.LSTM, 2 layers": lambda: nn.LSTM(INPUTS, HIDDEN, num_layers=2),
    "nn.GRU, bidirectional": lambda: nn.GRU(INPUTS, HIDDEN, bidirectional=True),
    "gst.RNN": lambda: RNN(INPUTS, HIDDEN),
    "gst.GRU, 2 layers": lambda: GRU(INPUTS, HIDDEN, num_layers=2),
    "gst.LSTM": lambda: LSTM(INPUTS, HIDDEN),
}
# Q and slow Q are powers of ten, the others relative.
TOLERANCES = {"Q": 1e-3, "slow Q": 1e-3, "dS": 1e-2, "correction": 1e-2, "gradient": 1e-3}
ALWAYS = {"q_range": (-1e6, 1e6), "max_change": 1e9}
NEVER_IN_RANGE = {"q_range": (-99.0, -98.0), "steer_rate": 0.1}


@dataclass(frozen=True)
class Route:
    """Where and how a measure is taken."""

    name: str
    device: str
    kernel: bool
    dtype: torch.dtype = torch.float32

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        with contextlib.nullcontext() if self.kernel else without_kernel():
            yield


REFERENCE = Route("reference", "cpu", kernel=False, dtype=torch.float64)


def ways() -> list[Route]:
    """Every way that this machine has."""
    found = [Route("cpu, kernel", "cpu", kernel=True), Route("cpu, no kernel", "cpu", kernel=False)]
    kinds = ("cuda", "mps", "xpu")
    there = [kind for kind in kinds if hasattr(torch, kind) and getattr(torch, kind).is_available()]
    return found + [Route(kind, kind, kernel=False) for kind in there]


def measures(make: Callable[[], nn.Module], way: Route) -> dict[str, Tensor]:
    """Everything that is compared, in float64 on the CPU."""
    with way.taken():
        judged, _ = _stepped(make, way, "skip", ALWAYS)
        held, moved = _stepped(make, way, "hold", NEVER_IN_RANGE)
        last = {"Q": judged.last, "slow Q": held.last}
        found = {
            name: torch.tensor(one.Q, dtype=torch.float64)
            for name, one in last.items()
            if one is not None
        }
        if judged.last is not None:
            found["dS"] = torch.tensor(judged.last.relative, dtype=torch.float64)
        found["correction"] = moved
        found["gradient"] = _flat([one.grad for one in held.model.parameters()])
    return found


def _stepped(
    make: Callable[[], nn.Module], way: Route, policy: str, settings: dict[str, object]
) -> tuple[Sieve, Tensor]:
    """A sieve after one step, and the change by that step."""
    module, inputs = _begun(make, way)
    before = _flat(module.parameters())
    optimizer = Sieve(module, torch.optim.SGD(module.parameters(), lr=1e-2), policy, **settings)  # type: ignore[arg-type]
    outputs = module(inputs)[0]
    (outputs[-1].sin().sum() + outputs[0].sum()).backward()
    optimizer.step()
    optimizer.close()
    return optimizer, _flat(module.parameters()) - before


def _begun(make: Callable[[], nn.Module], way: Route) -> tuple[nn.Module, Tensor]:
    """The same weights and inputs for every way."""
    generator = torch.Generator().manual_seed(0)
    module = make()
    with torch.no_grad():
        for one in module.parameters():
            one.copy_(torch.empty(one.shape).uniform_(-0.5, 0.5, generator=generator))
    inputs = torch.randn(STEPS, BATCH, INPUTS, generator=generator)
    return module.to(way.device, way.dtype), inputs.to(way.device, way.dtype)


def _flat(values: Iterable[Tensor | None]) -> Tensor:
    parts = [one.detach().reshape(-1).cpu().double() for one in values if one is not None]
    return torch.cat(parts)


def autograd_Q(make: Callable[[], nn.Module]) -> float:
    """Q of a module of one layer and direction by autograd: the recurrent product is a leaf."""
    module, inputs = _begun(make, REFERENCE)
    stack = find_stacks(module)[0]
    weights, cell = stack.weights()[Place(0, 0)], stack.cell
    state = tuple(inputs.new_zeros(BATCH, HIDDEN) for _ in range(cell.states))
    products = []
    for u in inputs:
        x = drive(u, weights, len(cell.gates))
        products.append(recur(state[0], weights, len(cell.gates)))
        state = cell.update(x, products[-1], state, {})
    near, far = torch.autograd.grad(state[0].sin().sum(), [products[-1], products[0]])
    return math.log10(float(near.flatten(1).norm(dim=1).mean() / far.flatten(1).norm(dim=1).mean()))


@dataclass(frozen=True)
class CheckRow:
    """One measure of one module: the difference of each way to the reference."""

    module: str
    measure: str
    differences: dict[str, float]

    @property
    def agrees(self) -> bool:
        return all(one <= TOLERANCES[self.measure] for one in self.differences.values())


def check() -> Iterator[CheckRow]:
    """Every row of the table."""
    for module, make in MODULES.items():
        reference = measures(make, REFERENCE)
        found = {way.name: measures(make, way) for way in ways()}
        for measure, right in reference.items():
            scale = 1.0 if measure.endswith("Q") else float(right.norm()) or 1.0
            differences = {
                name: float((one[measure] - right).norm()) / scale for name, one in found.items()
            }
            if measure == "Q" and not any(word in module for word in (",", "gst")):
                differences["autograd"] = abs(autograd_Q(make) - float(right))
            yield CheckRow(module, measure, differences)


def main() -> int:
    """Print the table; 0 where all agrees."""
    names = [*(way.name for way in ways()), "autograd"]
    print(f"PyTorch {torch.__version__}; differences to float64 on the CPU without the kernel\n")
    print(f"{'module':<22}{'measure':<12}" + "".join(f"{name:>16}" for name in names))
    wrong = 0
    for row in check():
        shown = [
            f"{row.differences[name]:.1e}" if name in row.differences else "" for name in names
        ]
        said = "" if row.agrees else f"  above {TOLERANCES[row.measure]:g}"
        wrong += not row.agrees
        print(f"{row.module:<22}{row.measure:<12}" + "".join(f"{one:>16}" for one in shown) + said)
    print(f"\n{wrong} rows disagree" if wrong else "\nall agree")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
