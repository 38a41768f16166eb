"""The picture of a diagnosis: gradient against lag, and the eigenvalues that it comes from."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradsieve.diagnosis._measure import Diagnosis
from gradsieve.errors import InvalidArgument
from gradsieve.export import Portable
from gradsieve.files import write_atomically
from gradsieve.network import SRN, Array

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"  # told apart by colour-blind readers too
GATES = {  # in PyTorch's order, with colours
    "gru": {"reset": GREY, "update": BLUE, "new": ORANGE},
    "lstm": {"input": GREY, "forget": BLUE, "cell": ORANGE, "output": "#009e73"},
}
ENDINGS = (".png", ".svg", ".pdf")


def draw(found: Diagnosis, net: SRN | Portable, path: Path) -> None:
    """Draw the diagnosis into a PNG, SVG or PDF file."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidArgument(f"{path}: a picture's name ends with {', '.join(ENDINGS)}")
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    lowest, highest = found.q_range
    left.axhspan(
        -highest, -lowest, color=BLUE, alpha=0.10, lw=0, label="range of the slow gradient"
    )
    left.plot(found.lags, -_numbers(found.slow_Q_at), color=BLUE, lw=2, label="slow gradient")
    left.plot(found.lags, _numbers(found.log10_ratio), color=GREY, lw=1, label="gradient norm")
    left.axvline(found.reach, color=ORANGE, ls="--", lw=1.5, label=f"reach {found.reach} steps")
    left.set_xlabel("steps back from the end")
    left.set_ylabel("log10 of size / size at the end")
    left.set_title("How far back the gradient gets")
    left.legend(frameon=False)
    angle = np.linspace(0, 2 * np.pi, 200)
    right.plot(np.cos(angle), np.sin(angle), color=GREY, lw=1)
    for gate, (matrix, color) in _recurrent(net).items():
        eigenvalues = np.linalg.eigvals(matrix.astype(np.float64))
        right.scatter(eigenvalues.real, eigenvalues.imag, s=14, color=color, label=gate)
    right.set_aspect("equal", adjustable="datalim")
    if found.spectral_radius is None:
        right.set_title("Eigenvalues, by gate")
        right.legend(frameon=False)
    else:
        right.set_title(f"Eigenvalues of w_rec, radius {found.spectral_radius:.2f}")
    right.set_xlabel("real")
    right.set_ylabel("imaginary")
    slow_Q = "–" if found.slow_Q is None else f"{found.slow_Q:+.2f}"
    figure.suptitle(
        f"{', '.join(map(str, found.judgement.symptoms))}: slow Q {slow_Q} over {found.horizon} "
        f"steps, {found.saturated:.0%} of activations saturated"
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    write_atomically(path, buffer.getvalue())


def _recurrent(net: SRN | Portable) -> dict[str, tuple[Array, str]]:
    """The recurrent matrices by gate, each with its colour."""
    if isinstance(net, SRN):
        return {"": (net.w_rec, ORANGE)}
    gates = GATES[net.cell]
    blocks = np.split(net.layers[0].w_hh, len(gates))
    return {gate: (block, gates[gate]) for gate, block in zip(gates, blocks, strict=True)}


def _numbers(values: list[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values])
