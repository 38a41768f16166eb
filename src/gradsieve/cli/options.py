"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

LowestQ = Annotated[
    float | None, typer.Option(help="Lower end of the safe range of Q: -1, or -2 to hold.")
]
HighestQ = Annotated[
    float | None, typer.Option(help="Upper end of the safe range of Q: 1, or 0.5 to hold.")
]
