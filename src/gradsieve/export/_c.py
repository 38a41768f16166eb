"""One C99 header: the network, its scaling and its arithmetic, for a device.

It includes nothing but <stdint.h>, allocates nothing, and takes one time step at a time. tanh and
exp are its own, so that it needs no maths library; both are right to some units in the last place.
The text is in `c_header.jinja`; here it is given its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import get_args

import numpy as np
from jinja2 import Environment, StrictUndefined

from gradsieve.errors import InvalidArgument, one_of
from gradsieve.export._footprint import WeightFormat, footprint, is_identity
from gradsieve.export._int8 import Int8Rows
from gradsieve.export._portable import GATES, Portable, portable
from gradsieve.model import Model
from gradsieve.network import Array

KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|"
    "inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|"
    "union|unsigned|void|volatile|while"
)
PER_LINE = 8


MISSING = {
    "refuse": "a step with a NaN or infinite input is not taken, and the state stays as it was.",
    "mean": "a NaN or infinite input counts as its mean in training.",
    "last": "for a NaN or infinite input the last value of it counts, and its mean before any.",
}
DRIFT = {
    "tanh": "every unit stays in -1 ... 1.",
    "gru": "every unit stays in -1 ... 1.",
    "lstm": "outputs of units stay in -1 ... 1, a cell changes by at most 1 a step.",
    "relu": "units have no upper end, so reset before they grow beyond those of training.",
}


def to_c(model: Model | Portable, name: str = "network", weights: WeightFormat = "float32") -> str:
    """The header's text; every name in it begins with `name`."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", name) or KEYWORDS.fullmatch(name):
        raise InvalidArgument(
            f"name is {name!r}; it must be a C name: letters, digits and _, a letter first"
        )
    one_of("weights", weights, get_args(WeightFormat))
    network = portable(model)
    scaling, int8 = network.scaling, weights == "int8"
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    template = environment.from_string(
        files("gradsieve.export").joinpath("c_header.jinja").read_text(encoding="utf-8")
    )
    scaled, interval = not is_identity(network), network.preparation.interval
    return template.render(
        name=name,
        NAME=name.upper(),
        cell=network.cell,
        gates=GATES[network.cell],
        inputs=network.inputs,
        hidden=network.hidden,
        outputs=network.outputs_each,
        softmax=network.output == "softmax",
        int8=int8,
        scaled=scaled,
        own_inputs=scaled or network.missing != "refuse",
        shifted=scaling.target_mean is not None,
        missing=network.missing,
        missing_words=MISSING[network.missing],
        drift_words=DRIFT[network.cell],
        longest=network.longest,
        interval=interval and f"{interval:.9g}",
        footprint=footprint(network, weights),
        mean=floats(scaling.mean),
        inverse_spread=floats(1 / scaling.spread),
        target_mean=floats(scaling.target_mean) if scaling.target_mean is not None else "",
        target_spread=floats(scaling.target_spread) if scaling.target_spread is not None else "",
        layers=[
            {
                "inputs": layer.w_ih.shape[1],
                "b": floats(layer.b),
                "b_n": floats(layer.b_n),
                **_matrix("w_ih", layer.w_ih, int8),
                **_matrix("w_hh", layer.w_hh, int8),
            }
            for layer in network.layers
        ],
        **_matrix("w_out", network.w_out, int8),
        b_out=floats(network.b_out),
        labels=[string(label) for label in network.classes or ()],
        inputs_named=[string(feature) for feature in network.features],
        features=[_comment(feature) for feature in network.features],
    )


def _matrix(key: str, matrix: Array, int8: bool) -> dict[str, str]:
    """A matrix and the scales of its rows, as C literals."""
    if not int8:
        return {key: floats(matrix), f"{key}_scale": ""}
    rows = Int8Rows.of(matrix)
    return {key: _wrapped(map(str, rows.q.ravel())), f"{key}_scale": floats(rows.scale)}


def _comment(text: str) -> str:
    """A name that can neither end a comment nor break its line."""
    return re.sub(r"[^A-Za-z0-9 _.+()\[\]-]", "?", text)[:60]


def floats(values: Array) -> str:
    """C literals that read back as the same float32."""
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=np.float32).ravel()
    if not np.isfinite(single).all():
        raise InvalidArgument("the network or its scaling has numbers that float32 cannot hold")
    return _wrapped(_literal(float(value)) for value in single)


def _literal(value: float) -> str:
    text = f"{value:.9g}"
    return f"{text}f" if any(mark in text for mark in ".e") else f"{text}.0f"


def _wrapped(literals: Iterable[str]) -> str:
    texts = list(literals)
    lines = [", ".join(texts[n : n + PER_LINE]) for n in range(0, len(texts), PER_LINE)]
    return "\n    " + ",\n    ".join(lines) + "\n"


def string(text: str) -> str:
    """A C string literal of this text in UTF-8; nothing in it can end the literal."""
    harmless = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.+")
    plain = "".join(
        chr(byte) if byte in harmless else f"\\{byte:03o}"
        for byte in text.encode("utf-8", errors="replace")
    )
    return f'"{plain}"'
