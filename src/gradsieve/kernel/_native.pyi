from collections.abc import Sequence
from typing import Any

from gradsieve.network import Array

class _Workspace:
    """Memory of one network and one minibatch; theta, u and updates in its own precision."""

    def __init__(
        self,
        T: int,
        B: int,
        I: int,
        H: int,
        O: int,
        softmax: bool,
        per_step: bool,
        isa: str = "",
    ) -> None: ...
    def backpropagate(self, theta: Array, u: Array, t: Array, starts: Array | None) -> float: ...
    def norms(
        self, update: Array | None, h: int, full: bool
    ) -> tuple[float, float, float, float, float, float, int, int]: ...
    def norm_gradient(self, h: int, of_Q: bool, full: bool) -> Array: ...
    def slow_factor(self, h: int, steps: int) -> float: ...
    def slow_gradient(self, h: int, steps: int) -> Array: ...
    def example_products(self, direction: Array) -> Array: ...
    def array(self, name: str) -> Array: ...
    @property
    def sizes(self) -> tuple[int, int, int, int, int, bool, bool]: ...
    @property
    def isa(self) -> str: ...
    @property
    def generation(self) -> int: ...
    @property
    def bytes(self) -> int: ...

class Workspace32(_Workspace): ...
class Workspace64(_Workspace): ...

def predict(
    theta: Array,
    u: Array,
    starts: Array | None,
    hidden: int,
    outputs: int,
    softmax: bool,
    per_step: bool,
    isa: str = "",
) -> Array: ...
def norm(values: Array) -> float: ...
def products(one: Array, other: Array) -> tuple[float, float]: ...
def propose(momentum: float, velocity: Array, rate: float, gradient: Array) -> Array: ...
def move(weights: Array, update: Array) -> bool: ...
def observe(decay: float, gradient: Array, mean_square: Array) -> None: ...
def scaled(gradient: Array, mean_square: Array, weight: float, epsilon: float) -> Array: ...
def available_isas() -> list[str]: ...
def isa() -> str: ...
def thread_limit() -> int: ...
def limit_threads(most: int, beyond: bool = False) -> None: ...
def shared_calls() -> int: ...
def fma_peak(seconds: float = 0.05, double_precision: bool = False, isa: str = "") -> float: ...

# One recurrent layer in one direction (src/recurrent.hpp); what is not there is None.
_Arrays = tuple[Any, ...]

def recurrent_forward(
    cell: str,
    u: Any,
    weights: _Arrays,  # weight_ih, weight_hh, bias_ih, bias_hh
    initial: _Arrays,  # h0, c0
    batch_sizes: Any,
    reverse: bool,
    out: _Arrays,  # h, gates, c, last h, last c
    isa: str = "",
) -> None: ...
def recurrent_backward(
    cell: str,
    u: Any,
    weights: _Arrays,
    initial: _Arrays,
    batch_sizes: Any,
    reverse: bool,
    states: _Arrays,  # h, gates, c
    seeds: _Arrays,  # gradients by h, by the last h and by the last c
    out: _Arrays,  # gradients by u, h0, c0, weight_ih, weight_hh, bias_ih, bias_hh
    isa: str = "",
    followed: _Linearised | None = None,  # takes the deltas too
) -> bool:
    """True where the deltas of each sequence are those of a gradient at one step alone."""

class _Linearised:
    """One recurrent layer, linearised along its states (linearised.hpp); arrays of one precision.

    Rows of weights are PyTorch's; G gates, products (T,B,G,H). Of last, -1 is nowhere.
    """

    def __init__(self, cell: str, T: int, B: int, I: int, H: int, isa: str = "") -> None: ...
    def load(
        self,
        u: Array,
        h: Array,
        initial: Sequence[Array | None],  # h0, c0
        weights: Sequence[Array | None],  # weight_ih, weight_hh, bias_ih, bias_hh
    ) -> None: ...
    def recall(
        self,
        u: Array,
        h: Array,
        initial: Sequence[Array | None],
        weights: Sequence[Array | None],
        gates: Array | None = None,  # as recurrent_forward keeps them
        c: Array | None = None,
    ) -> None: ...
    def pull(
        self,
        gamma: list[Array | None],
        last: Array,
        above: Array | None = None,
        above_exponents: Array | None = None,
    ) -> None: ...
    def slow(self, weights: Array) -> tuple[Array, Array]: ...
    def slow_ends(self, weights: Array, last: Array) -> Array: ...
    def slow_slopes(
        self, weights: Array, last: Array, share: float
    ) -> tuple[Array, Array, Array, Array]: ...
    def push_cotangent(
        self,
        near: Array,
        slow: Array,
        factors: Array,
        last: Array,
        below: Array | None = None,
    ) -> None: ...
    def push_update(
        self,
        W_ih: Array,
        W_hh: Array,
        b_ih: Array | None,
        b_hh: Array | None,
        below: Array | None = None,
    ) -> None: ...
    def bend_cotangent(self, above: Array | None = None) -> None: ...
    def bend_update(
        self,
        W_ih: Array,
        W_hh: Array,
        above: Array | None = None,
        above_exponents: Array | None = None,
    ) -> None: ...
    def by_inputs(
        self, W_ih: Array, update: Array | None = None, of_change: bool = False
    ) -> Array: ...
    def by_weights(self) -> tuple[Array, Array, Array, Array]: ...
    @property
    def delta(self) -> Array: ...
    @property
    def last(self) -> Array: ...
    @property
    def exponents(self) -> Array: ...
    @property
    def change(self) -> Array: ...
    @property
    def after(self) -> Array: ...

class Linearised32(_Linearised): ...
class Linearised64(_Linearised): ...
