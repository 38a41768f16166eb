"""States of the sieve, made comparable."""

from __future__ import annotations

from typing import Any


def own_part(state: dict[str, Any]) -> dict[str, Any]:
    """The sieve's own part of a state, its tensors as lists."""
    own = state["gradsieve"]
    gradients = {name: gradient.tolist() for name, gradient in own["gradients"].items()}
    return own | {"gradients": gradients}
