"""The picture of a diagnosis: gradient against lag, and the eigenvalues that it comes from."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradsieve.diagnosis._measure import Diagnosis
from gradsieve.errors import InvalidArgument
from gradsieve.files import write_atomically
from gradsieve.network import SRN, Array

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"  # told apart by colour-blind readers too
ENDINGS = (".png", ".svg", ".pdf")


def draw(found: Diagnosis, net: SRN, path: Path) -> None:
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
    eigenvalues = np.linalg.eigvals(net.w_rec.astype(np.float64))
    angle = np.linspace(0, 2 * np.pi, 200)
    right.plot(np.cos(angle), np.sin(angle), color=GREY, lw=1)
    right.scatter(eigenvalues.real, eigenvalues.imag, s=14, color=ORANGE)
    right.set_aspect("equal", adjustable="datalim")
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


def _numbers(values: list[float | None]) -> Array:
    return np.array([np.nan if value is None else value for value in values])
