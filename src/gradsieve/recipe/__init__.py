"""How a network is trained, as one value.

A `Recipe` has six parts, each a frozen group of settings in a file of its own: `Start`,
`Optimiser`, `Sieve`, `Schedule`, `Curriculum` and `Budget`. The command line, run.json, the report
and the arms of the experiments are made from their fields. `gradsieve.recipes` has ready ones.
"""

from gradsieve.recipe.budget import Budget
from gradsieve.recipe.curriculum import Curriculum
from gradsieve.recipe.optimiser import Optimiser
from gradsieve.recipe.recipe import PARTS, RENAMED, Recipe
from gradsieve.recipe.schedule import Schedule
from gradsieve.sieve import Sieve
from gradsieve.start import Start

__all__ = [
    "Recipe",
    "Start",
    "Optimiser",
    "Sieve",
    "Schedule",
    "Curriculum",
    "Budget",
    "PARTS",
    "RENAMED",
]
