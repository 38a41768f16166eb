"""`Search`: the choices that validation makes, and the recipe with all other settings.

`benchmarks/own_data_defaults.py` chose the defaults of both, by validation parts of data sets that
no table reports (docs/own-data.md, "How the defaults were chosen").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gradsieve import recipes
from gradsieve.data import Sequences
from gradsieve.diagnosis import typical_horizon
from gradsieve.errors import InvalidArgument
from gradsieve.fitting._gated_run import GatedStart
from gradsieve.recipe import Curriculum, Recipe
from gradsieve.settings import Settings, setting
from gradsieve.start import Recurrent

FittedCell = Literal["tanh", "gru", "lstm"]
CELLS: tuple[FittedCell, ...] = get_args(FittedCell)
GATED_STARTS = get_args(GatedStart)
FEW_SERIES, FEW_UNITS, MANY_UNITS = 1000, 32, 64


@dataclass(frozen=True)
class Search(Settings):
    """The choices of short trials, and how many of the trials are trained to the end."""

    cells: tuple[FittedCell, ...] = setting(
        ("tanh",),
        "Cells to try. gru and lstm are trained by PyTorch.",
        shape=f"names out of {', '.join(get_args(FittedCell))}, one or more",
    )
    hidden: int | None = setting(
        None,
        "Hidden units; None is 32, and 64 from a thousand training series on.",
        least=1,
        whole=True,
        none=True,
    )
    rates: tuple[float, ...] = setting(
        (1e-3, 3e-3, 1e-2),
        "Learning rates to try; with none of them the recipe's own is used.",
        shape="numbers above 0",
    )
    starts: tuple[Recurrent, ...] = setting(
        ("mixed",),
        "Starts of the recurrent matrix of tanh units to try; with none of them the recipe's own "
        "is used.",
        shape=f"names out of {', '.join(get_args(Recurrent))}",
    )
    noises: tuple[float, ...] = setting(
        (0.0, 0.3),
        "Standard deviations of the noise on copies of the training series, in units of each "
        "input's own; 0 makes no copies.",
        shape="numbers of at least 0, one or more",
    )
    networks: int = setting(
        1, "Initial networks that each choice is tried with.", least=1, whole=True
    )
    updates: int = setting(800, "Minibatches of a trial.", least=1, whole=True)
    finalists: int = setting(
        1,
        "Best trials that are trained to the end; the best of them is taken.",
        least=1,
        whole=True,
    )
    seconds: float | None = setting(
        None,
        "Time for search and training together; None trains as long as the recipe says.",
        above=0,
        none=True,
    )
    clock: Literal["wall", "cpu"] = setting(
        "wall",
        "The clock of `seconds`: wall time, or CPU time of this process, which does not depend on "
        "the machine's other work.",
        choices=("wall", "cpu"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("rates", lambda rate: math.isfinite(rate) and rate > 0)
        self._check("noises", lambda noise: math.isfinite(noise) and noise >= 0)
        self._check("starts", get_args(Recurrent).__contains__)
        self._check("cells", get_args(FittedCell).__contains__)
        for name in ("noises", "cells"):
            if not getattr(self, name):
                shape = type(self).__dataclass_fields__[name].metadata["rule"]
                raise InvalidArgument(f"{name} is empty; it must be {shape}")

    def _check(self, name: str, allowed: Any) -> None:
        values = getattr(self, name)
        several = isinstance(values, Sequence) and not isinstance(values, str)
        try:
            fits = several and all(allowed(value) for value in values)
        except TypeError:
            fits = False
        if not fits:
            shape = type(self).__dataclass_fields__[name].metadata["rule"]
            raise InvalidArgument(f"{name} is {values!r}; it must be {shape}")
        object.__setattr__(self, name, tuple(values))

    def starts_of(self, cell: FittedCell) -> tuple[str, ...]:
        """The starts that a cell is tried with; none: the recipe's own."""
        return self.starts if cell == "tanh" else GATED_STARTS

    def units(self, train: Sequences) -> int:
        if self.hidden is not None:
            return self.hidden
        return FEW_UNITS if train.count < FEW_SERIES else MANY_UNITS


def cells(name: str) -> tuple[FittedCell, ...]:
    """The cells to try that a name stands for: one of them, or "auto" for all."""
    if name == "auto":
        return CELLS
    if name not in CELLS:
        raise InvalidArgument(f"cell is {name!r}; it may be {', '.join(CELLS)} or auto")
    return (name,)


NO_SEARCH = Search(rates=(), starts=(), noises=(0.0,), finalists=1)


def own_recipe() -> Recipe:
    """`recipes.own_data()` with a budget to match.

    There is no accuracy to stop at, so patience ends a run; there is no curriculum, because own
    data cannot be drawn at other lengths.
    """
    return recipes.own_data().replaced(
        variance=1 / FEW_UNITS,
        curriculum=Curriculum(),
        epochs=100,
        patience=50,
        stop_at=None,
        validate_every=1,
    )


def fitted_to(recipe: Recipe, train: Sequences) -> Recipe:
    """The recipe with a horizon that nine in ten series have; no sieve where that is no step."""
    if recipe.sieve is None:
        return recipe
    horizon = typical_horizon(train.lengths)
    if horizon < 1:
        return recipe.replaced(sieve="off")
    return recipe.replaced(horizon=recipe.sieve.horizon or horizon)
