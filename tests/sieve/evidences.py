"""Evidence for policies: made by hand, or drawn by hypothesis."""

import math
from dataclasses import dataclass

from hypothesis import strategies as st

import gradsieve as gs
from gradsieve.sieve import Evidence, Slope

any_number = st.floats(allow_nan=True, allow_infinity=True)
finite = st.floats(-1e6, 1e6)
slopes = st.builds(
    Slope,
    along=st.floats(-10, 10),
    square=st.floats(1e-12, 1e12),
    length=st.floats(1e-12, 1e3),
)


def change(Q, dS, relative=None):
    return gs.NormChange(S=1.0, dS=dS, relative=dS / 2 if relative is None else relative, Q=Q, dQ=0)


@dataclass
class Going:
    """How learning goes, as `Learning` would say it."""

    held: int = 0


def whole_evidence(policy, Q, slope=None, dS=0.0, contributions=(), learning=None):
    """All that a policy may ask for; it is to look only at what it does ask for."""
    return Evidence(
        Q, learning, change=change(Q, dS), slope=slope, contributions=tuple(contributions)
    )


def correction_length(decision, slope):
    return abs(decision.correction) * math.sqrt(slope.square)
