"""One C99 header: the network, its scaling and its arithmetic, for a device.

It includes nothing but <stdint.h>, allocates nothing, and takes one time step at a time. tanh and
exp are its own, so that it needs no maths library; both are right to some units in the last place.
The text is in `c_header.jinja`; here it is given its numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files

import numpy as np
from jinja2 import Environment, StrictUndefined

from gradsieve.errors import InvalidArgument
from gradsieve.export._footprint import WeightFormat, checked_weights, footprint, is_identity
from gradsieve.export._int8 import Rows
from gradsieve.model import Model
from gradsieve.network import Array

KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|"
    "inline|int|long|register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|"
    "union|unsigned|void|volatile|while"
)
PER_LINE = 8


def to_c(model: Model, name: str = "network", weights: WeightFormat = "float32") -> str:
    """The header's text; every name in it begins with `name`."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", name) or KEYWORDS.fullmatch(name):
        raise InvalidArgument(
            f"name is {name!r}; it must be a C name: letters, digits and _, a letter first"
        )
    checked_weights(weights)
    net, scaling = model.net, model.scaling
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    template = environment.from_string(
        files("gradsieve.export").joinpath("c_header.jinja").read_text(encoding="utf-8")
    )
    matrices = {"w_in": net.w_in, "w_rec": net.w_rec, "w_out": net.w_out}
    return template.render(
        name=name,
        NAME=name.upper(),
        inputs=net.inputs,
        hidden=net.hidden,
        outputs=net.outputs,
        softmax=net.output == "softmax",
        int8=weights == "int8",
        scaled=not is_identity(model),
        shifted=scaling.target_mean is not None,
        footprint=footprint(model, weights),
        mean=floats(scaling.mean),
        inverse_spread=floats(1 / scaling.spread),
        target_mean=floats(scaling.target_mean) if scaling.target_mean is not None else "",
        target_spread=floats(scaling.target_spread) if scaling.target_spread is not None else "",
        b=floats(net.b),
        b_out=floats(net.b_out),
        matrices={key: _rows(value, weights) for key, value in matrices.items()},
        scales={key: floats(Rows.of(value).scale) for key, value in matrices.items()},
        labels=[string(label) for label in model.classes or ()],
    )


def _rows(matrix: Array, weights: WeightFormat) -> str:
    """The matrix unit by unit: what each one sums over lies together."""
    if weights == "int8":
        return _wrapped(str(value) for value in Rows.of(matrix).q.ravel())
    return floats(matrix.T)


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
