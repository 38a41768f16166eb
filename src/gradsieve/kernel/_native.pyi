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
) -> None: ...

# One tanh layer: sizes, then addresses of arrays, 0 for none (gradsieve.torch.kernel_bridge).
def tanh_deltas32(
    T: int,
    B: int,
    H: int,
    z: int,
    W: int,
    gamma: int,
    last: int,
    delta: int,
    exponents: int,
    /,
) -> None: ...
def tanh_change32(
    T: int,
    B: int,
    I: int,
    H: int,
    u: int,
    z: int,
    initial: int,
    W: int,
    dW_in: int,
    dW: int,
    db: int,
    delta: int,
    exponents: int,
    da: int,
    change: int,
    /,
) -> None: ...

tanh_deltas64 = tanh_deltas32
tanh_change64 = tanh_change32

# The recursions in time of gradsieve.torch: arrays in, arrays written in place.
def __getattr__(name: str) -> Any: ...
