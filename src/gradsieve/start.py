"""How a network begins: its recurrent matrix, and how far its units bend.

The recurrent matrix decides how far back the first gradient reaches. "orthogonal", "identity" and
"mixed", half of each, keep the norm of every delta; "gaussian" is the paper's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from gradsieve.errors import InvalidArgument
from gradsieve.settings import Settings, setting

Array = NDArray[Any]
Recurrent = Literal["mixed", "orthogonal", "identity", "gaussian"]


@dataclass(frozen=True)
class Start(Settings):
    """The initial weights, but for the seed that they are drawn by."""

    recurrent: Recurrent = setting(
        "gaussian", "How the recurrent matrix begins.", choices=get_args(Recurrent)
    )
    variance: float = setting(0.01, "Variance of Gaussian weights: the paper's sigma.", least=0)
    gain: float = setting(1.0, "Factor of the recurrent matrix; below 1 it contracts.", least=0)
    input_gain: float = setting(
        1.0, "Factor of the input weights; large ones make the units bend.", least=0
    )
    bias_spread: float = setting(
        0.0, "Standard deviation of the hidden biases; with 0 they begin at zero.", least=0
    )

    def draw(self, inputs: int, hidden: int, outputs: int, seed: int) -> dict[str, Array]:
        """The five weight arrays. Starts of one seed share all that they do not name."""
        generator = np.random.Generator(np.random.PCG64(seed))
        spread = math.sqrt(self.variance)
        w_in = generator.standard_normal((inputs, hidden)) * spread
        normal = generator.standard_normal((hidden, hidden))
        w_out = generator.standard_normal((hidden, outputs)) * spread
        values = {
            "w_in": w_in * self.input_gain,
            "w_rec": self._recurrent(normal) * self.gain,
            "b": np.zeros(hidden),
            "w_out": w_out,
            "b_out": np.zeros(outputs),
        }
        if self.bias_spread:
            values["b"] = generator.standard_normal(hidden) * self.bias_spread
        return values

    def _recurrent(self, normal: Array) -> Array:
        if self.recurrent == "identity":
            return np.eye(len(normal))
        if self.recurrent == "orthogonal":
            return orthogonal(normal)
        if self.recurrent == "mixed":
            return mixed(normal)
        return normal * math.sqrt(self.variance)


def orthogonal(normal: Array) -> Array:
    """The orthogonal factor of a Gaussian matrix: uniform over all orthogonal matrices.

    The signs of R's diagonal are moved into Q, without which QR's own convention would decide them
    (Mezzadri 2007).
    """
    q, r = np.linalg.qr(normal)
    found: Array = q * np.sign(np.diagonal(r))
    return found


def mixed(normal: Array) -> Array:
    """Half the units as the identity, half as a random orthogonal matrix.

    The first half keeps a state as it is, for dependencies over many steps. The second half turns
    it, for features of the last steps. Neither shrinks a delta.
    """
    w_rec = np.eye(len(normal))
    first = len(normal) // 2
    w_rec[first:, first:] = orthogonal(normal[first:, first:])
    return w_rec


def as_start(start: Start | str, **settings: Any) -> Start:
    """A start by its name, with further settings, or as it is."""
    if isinstance(start, str):
        if "recurrent" in settings:
            raise InvalidArgument(
                f"recurrent is {settings['recurrent']!r}; it is given as "
                f"start={settings['recurrent']!r}"
            )
        return Start.from_dict({"recurrent": start, **settings})
    if settings:
        raise InvalidArgument(
            f"start is {start!r}; {', '.join(settings)} can only be given beside a name"
        )
    return start
