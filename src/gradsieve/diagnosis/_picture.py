"""The picture of a diagnosis: gradient against lag, and the eigenvalues that it comes from."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gradsieve.diagnosis._measure import KEPT, Diagnosis
from gradsieve.errors import InvalidArgument
from gradsieve.files import write_atomically
from gradsieve.network import SRN

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#666666"  # told apart by colour-blind readers too
ENDINGS = (".png", ".svg", ".pdf")


def draw(found: Diagnosis, net: SRN, path: Path) -> None:
    """Draw the diagnosis into a PNG, SVG or PDF file."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidArgument(f"{path}: a picture's name ends with {', '.join(ENDINGS)}")
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(2, 1))
    ratio = np.array([np.nan if value is None else value for value in found.log10_ratio])
    left.axhspan(KEPT, -KEPT, color=BLUE, alpha=0.10, lw=0, label="kept within a factor of ten")
    left.plot(found.lags, ratio, color=BLUE, lw=2)
    left.axvline(found.reach, color=ORANGE, ls="--", lw=1.5, label=f"reach {found.reach} steps")
    left.set_xlabel("steps back from the end")
    left.set_ylabel("log10 of gradient norm / norm at the end")
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
    figure.suptitle(
        f"{found.condition}: Q {'–' if found.Q is None else f'{found.Q:+.2f}'} over "
        f"{found.horizon} steps, {found.saturated:.0%} of activations saturated"
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=150)
    write_atomically(path, buffer.getvalue())
